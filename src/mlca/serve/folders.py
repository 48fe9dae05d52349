"""A folder belongs to one service at a time."""

from __future__ import annotations

import os
from pathlib import Path


class FolderLock:
    """Holds a folder for one process, as long as it lives.

    Parameters
    ----------
    folder : Path
        The folder; made where there is none.
    """

    def __init__(self, folder: Path) -> None:
        import fcntl

        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ValueError(
                f"{folder}: {error.strerror}; the service keeps its log there: give --data one that can be written"
            ) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise ValueError(
                f"{folder}: another mlca serve is at work here; stop it, or give this one a folder of its own "
                "(several services share a log in PostgreSQL: --log postgresql://...)"
            ) from None

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)
