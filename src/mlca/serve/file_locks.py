"""File locks: only one service uses a folder, and one program at a time changes a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType


class FolderLock:
    """Locks a folder until it is released or the process ends.

    Parameters
    ----------
    folder : Path
        The folder; created if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        fcntl = _locks()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ValueError(
                f"{folder}: {error.strerror}; the service keeps its log there; choose a writable folder with --data"
            ) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise ValueError(
                f"{folder}: another mlca serve uses this folder; stop it, or use another folder "
                "(several services can share a log in PostgreSQL: --log postgresql://...)"
            ) from None

    def release(self) -> None:
        """Unlock the folder."""
        os.close(self._descriptor)


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Lock the folder of a file while it is changed; unlike a lock file, this leaves no trace.

    Parameters
    ----------
    path : Path
        The file, which need not exist yet.
    """
    fcntl = _locks()
    descriptor = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders do not support locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _locks() -> ModuleType:
    try:
        import fcntl
    except ImportError:
        raise ValueError(
            "mlca serve runs on Linux and macOS only, because it needs their file locks; on this system, use "
            "mlca.client or mlca send with a service on another machine"
        ) from None
    return fcntl
