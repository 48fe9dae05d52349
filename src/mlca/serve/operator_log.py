"""The operator's log: one JSON object per line on standard error, without row data.

A separate thread writes the lines. If a log collector stops reading, or the disk is full, lines are lost but the
service continues.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import time
from collections import deque
from typing import Any

# Largest number of waiting lines; beyond it, the oldest are lost.
_MOST = 10_000
_lines: deque[str] = deque(maxlen=_MOST)
_due, _writing = threading.Event(), threading.Lock()
# Seconds between writes of non-urgent lines, and seconds that `flush` waits for a write in another thread.
_PAUSE, _LAST = 0.5, 2.0


def log_event(event: str, *, at_once: bool = True, **facts: Any) -> None:
    """Queue a line about an event for the operator's log.

    Parameters
    ----------
    event : str
        The name of the event.
    at_once : bool, default=True
        Whether to write the line immediately; other lines are written together, within about a second.
    **facts
        Additional fields of the line; they must not contain IDs, labels or values of rows.
    """
    now = time.time()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
    _lines.append(json.dumps({"at": at, "event": event, **facts}) + "\n")
    if at_once:
        _due.set()


def start_writing() -> None:
    """Start the writer thread; also log Python warnings, and warnings of libraries."""
    logging.basicConfig(handlers=[_FromBelow()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    threading.Thread(target=_keep_writing, name="mlca-operator-log", daemon=True).start()


def flush() -> None:
    """Write all waiting lines; give up if a write in another thread takes too long."""
    if not _writing.acquire(timeout=_LAST):
        return
    try:
        with contextlib.suppress(OSError, ValueError):  # a full disk, a closed pipe
            while _lines:
                sys.stderr.write("".join(_lines.popleft() for _ in range(len(_lines))))
            sys.stderr.flush()
    finally:
        _writing.release()


def _keep_writing() -> None:
    while True:
        _due.wait(_PAUSE)
        _due.clear()
        flush()


class _FromBelow(logging.Handler):
    """Forwards log records of libraries without exception details, which may contain row data."""

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[0] if record.exc_info else None
        problem = record.getMessage().strip().partition("\n")[0][:200]
        log_event("trouble", problem=problem, source=record.name, kind=None if fault is None else fault.__name__)
