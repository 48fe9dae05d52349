"""The operator's log: one JSON object per line on standard error, without anything of a row.

A thread writes the lines. A collector that has stopped reading, or a full disk, costs lines and nothing else.
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

# Lines that may wait to be written; of more, the oldest are lost.
_MOST = 10_000
_lines: deque[str] = deque(maxlen=_MOST)
_due, _writing = threading.Event(), threading.Lock()
# Seconds between two writes of lines that are not urgent, and that `flush` waits for another write.
_PAUSE, _LAST = 0.5, 2.0


def log_event(event: str, *, at_once: bool = True, **facts: Any) -> None:
    """Write a line.

    Parameters
    ----------
    event : str
        What happened, in a word.
    at_once : bool, default=True
        Whether it matters that it is written now; lines that can wait are written together, within a second or so.
    **facts
        What an operator wants to know of it; no ids, labels or values of rows.
    """
    now = time.time()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
    _lines.append(json.dumps({"at": at, "event": event, **facts}) + "\n")
    if at_once:
        _due.set()


def start_writing() -> None:
    """Start the thread that writes; messages of uvicorn and Python's warnings are written as well."""
    logging.basicConfig(handlers=[_FromBelow()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    threading.Thread(target=_keep_writing, name="mlca-operator-log", daemon=True).start()


def flush() -> None:
    """Write all lines that wait; give up where another thread is stuck in writing."""
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
    """Tells what libraries log, without what they know of a fault: that may be part of a row."""

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[0] if record.exc_info else None
        problem = record.getMessage().strip().partition("\n")[0][:200]
        log_event("trouble", problem=problem, source=record.name, kind=None if fault is None else fault.__name__)
