"""Files that are replaced whole or not at all, whatever happens while they are written.

What is written goes to an unfinished file beside the target, under an unguessable name, and is renamed when
it is on the disk. A process that is killed leaves its unfinished file behind; the next one that replaces the same
target removes it. A lock distinguishes living writers from dead ones, which the system lets go with the process.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl

# Names may be as long as the system allows; of a longer one the beginning is enough.
_KEPT_OF_NAME = 32

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of `path` at the end, if there is no exception.

    Parameters
    ----------
    path : path-like
        Where the file goes. A link stays, and what it names is replaced.
    mode : int, optional
        Its permissions; by default those of the file that is there, or else of any new file.

    Yields
    ------
    binary file
        Can be written, read and sought.

    Raises
    ------
    IsADirectoryError, FileNotFoundError
        If the path is a folder, or its folder is not there.
    ValueError
        If the path is a device, a FIFO or a socket.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> note = pathlib.Path(tempfile.mkdtemp()) / "note"
    >>> with replacing(note) as file:
    ...     _ = file.write(b"all of it")
    >>> note.read_bytes()
    b'all of it'
    """
    target = Path(os.path.realpath(path))
    found = check_replaceable(path)
    mode = found if mode is None else mode
    _remove_abandoned(target)
    unfinished, descriptor = _create(target, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            if mode is not None:
                unfinished.chmod(mode)  # the umask may have taken some of it
            os.fsync(file.fileno())
            if sys.platform != "win32":
                unfinished.replace(target)  # still locked, so no writer removes it as abandoned
        if sys.platform == "win32":
            unfinished.replace(target)  # Windows does not rename what is open
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None and error.errno in _NO_ROOM:
            error.filename = os.fspath(path)  # the system does not say of which file
        raise
    flush_directory(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> int | None:
    """Raise as `replacing` would; return the permissions of the file that is there, None if there is none."""
    target = Path(os.path.realpath(path))
    try:
        mode = Path(path).stat().st_mode  # of /dev/stdout the real path is no file where it is a pipe
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent)) from None
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", str(path))
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path}: a device, a FIFO or a socket, which cannot be replaced by a file; name another")
    return stat.S_IMODE(mode) & 0o777


def _create(target: Path, mode: int) -> tuple[Path, int]:
    """Make an unfinished file that is locked by this process."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        unfinished = target.with_name(f".{target.name[:_KEPT_OF_NAME]}.{secrets.token_hex(8)}.part")
        descriptor = os.open(unfinished, flags, mode)
        if sys.platform == "win32":
            return unfinished, descriptor
        with suppress(OSError):  # some network folders know no locks; nothing is ever removed there
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Between its making and its locking another process may have taken it for abandoned.
        if unfinished.exists():
            return unfinished, descriptor
        os.close(descriptor)


def _remove_abandoned(target: Path) -> None:
    """Remove what killed processes left of the same target."""
    name = re.compile(rf"\.{re.escape(target.name[:_KEPT_OF_NAME])}\.[a-z0-9_]{{8,16}}\.part")
    with suppress(PermissionError):  # a folder may be written without being listed
        for entry in target.parent.iterdir():
            if name.fullmatch(entry.name) and not entry.is_symlink() and entry.is_file():
                with suppress(OSError):
                    _remove_unless_locked(entry)


def _remove_unless_locked(path: Path) -> None:
    if sys.platform == "win32":
        path.unlink()  # which fails as long as somebody has it open
        return
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def flush_directory(directory: Path) -> None:
    """Make a rename survive a power failure, where the system can."""
    if os.name != "posix":
        return
    with suppress(PermissionError):  # as above
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
