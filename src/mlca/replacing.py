"""Atomic replacement of files.

Data are written to a temporary file with an unguessable name beside the target. Once they are on disk, the file is
renamed to the target. A killed process leaves its temporary file behind; the next process that replaces the same target
removes it. A lock, which the system releases when a process ends, distinguishes the files of running processes from
those of killed ones.
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

# Number of characters of the target's name in the temporary name; file systems limit the length of names.
_KEPT_OF_NAME = 32

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces `path` unless an exception is raised.

    Parameters
    ----------
    path : path-like
        The target. If it is a link, the file that it points to is replaced.
    mode : int, optional
        The permissions. Default: those of the existing file, or the system's default for a new file.

    Yields
    ------
    binary file
        Supports writing, reading and seeking.

    Raises
    ------
    IsADirectoryError, FileNotFoundError
        If the path is a folder, or its parent folder does not exist.
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
                unfinished.chmod(mode)  # the umask may have removed some permissions
            os.fsync(file.fileno())
            if sys.platform != "win32":
                unfinished.replace(target)  # still locked, so no writer removes it as abandoned
        if sys.platform == "win32":
            unfinished.replace(target)  # Windows cannot rename open files
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None and error.errno in _NO_ROOM:
            error.filename = os.fspath(path)  # the system error has no file name
        raise
    flush_directory(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> int | None:
    """Check that `path` can be replaced; return its permissions, or None for a new file."""
    target = Path(os.path.realpath(path))
    try:
        mode = Path(path).stat().st_mode  # `path`, because the real path of /dev/stdout does not exist if it is a pipe
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent)) from None
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", str(path))
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is a device, a FIFO or a socket, which cannot be replaced by a file; choose another")
    return stat.S_IMODE(mode) & 0o777


def _create(target: Path, mode: int) -> tuple[Path, int]:
    """Create a temporary file and lock it; return its path and descriptor."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        unfinished = target.with_name(f".{target.name[:_KEPT_OF_NAME]}.{secrets.token_hex(8)}.part")
        descriptor = os.open(unfinished, flags, mode)
        if sys.platform == "win32":
            return unfinished, descriptor
        with suppress(OSError):  # some network file systems do not support locks; nothing is removed there
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Before the file was locked, another process may have removed it as abandoned.
        if unfinished.exists():
            return unfinished, descriptor
        os.close(descriptor)


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of killed processes for the same target."""
    name = re.compile(rf"\.{re.escape(target.name[:_KEPT_OF_NAME])}\.[a-z0-9_]{{8,16}}\.part")
    with suppress(PermissionError):  # a folder may be writable without being listable
        for entry in target.parent.iterdir():
            if name.fullmatch(entry.name) and not entry.is_symlink() and entry.is_file():
                with suppress(OSError):
                    _remove_unless_locked(entry)


def _remove_unless_locked(path: Path) -> None:
    if sys.platform == "win32":
        path.unlink()  # fails while a process has the file open
        return
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def flush_directory(directory: Path) -> None:
    """Make a rename durable, where the system supports it."""
    if os.name != "posix":
        return
    with suppress(PermissionError):  # the folder may not be readable
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
