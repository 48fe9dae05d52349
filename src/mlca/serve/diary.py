"""What the service tells its operator: one JSON object a line on standard error, never anything of a row."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

_lock = threading.Lock()
_lines: list[str] = []
# Lines that may wait for each other.
_TOGETHER = 100


def tell(event: str, *, at_once: bool = True, **facts: Any) -> None:
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
    if at_once or len(_lines) >= _TOGETHER:
        write_out()


def write_out() -> None:
    """Write all lines that wait."""
    with _lock:
        count = len(_lines)
        if count:
            sys.stderr.write("".join(_lines[:count]))
            sys.stderr.flush()
            del _lines[:count]
