"""A lock on a model file, held while an update loads, trains and replaces the model.

The lock is on the model file itself, so even a killed process leaves nothing behind. If the file was replaced while a
process waited for its lock, the process then locks the new file. On Windows, which cannot replace an open file by
renaming, there is a lock file beside the model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from mlca.messages import shown

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Seconds between two attempts to lock the file.
_PAUSE = 0.05


class ModelLock:
    """A lock that this process holds on a model file, until it has replaced the file."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor

    def check(self) -> None:
        """Raise ValueError if a program that ignores the lock has replaced the model."""
        if not _is_current(_lock_file(self._path), self._descriptor):
            raise ValueError(
                f"{self._path}: the model was replaced while this update was running, so nothing is saved; "
                "run the update again"
            )


@contextmanager
def locked(path: str, wait: float) -> Iterator[ModelLock]:
    """Hold the lock of a model file during a block, after waiting for it if necessary.

    Parameters
    ----------
    path : str
        The model file.
    wait : float
        The longest wait for another update, in seconds.

    Raises
    ------
    ValueError
        If another process still holds the lock at the end of the wait.
    """
    file = _lock_file(path)
    deadline = monotonic() + wait
    descriptor = _attempt(file)
    if descriptor is None:
        print(f"{shown(path)}: another update is running; waiting up to {wait:g} s", file=sys.stderr, flush=True)
    while descriptor is None:
        if monotonic() > deadline:
            raise ValueError(
                f"{path}: another update is still running after {wait:g} s, so nothing was learned; "
                "try again, or give it more time: --wait SECONDS"
            )
        sleep(_PAUSE)
        descriptor = _attempt(file)
    try:
        yield ModelLock(path, descriptor)
    finally:
        os.close(descriptor)


def _lock_file(path: str) -> Path:
    model = Path(os.path.realpath(path))
    return model.with_name(f".{model.name}.lock") if sys.platform == "win32" else model


def _attempt(file: Path) -> int | None:
    """Return an open descriptor that holds the lock; None if another process holds it."""
    descriptor = _open(file)
    if _lock(descriptor) and _is_current(file, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _open(file: Path) -> int:
    if sys.platform == "win32":
        return os.open(file, os.O_RDWR | os.O_CREAT)
    try:
        return os.open(file, os.O_RDWR | os.O_NONBLOCK)  # network folders can lock only writable files
    except PermissionError:
        return os.open(file, os.O_RDONLY | os.O_NONBLOCK)


def _lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        print(
            f"this file system does not support locks ({error.strerror}); do not run another update meanwhile",
            file=sys.stderr,
        )
    return True


def _is_current(file: Path, descriptor: int) -> bool:
    """Return whether the path still refers to the opened file, rather than to a newer one."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
