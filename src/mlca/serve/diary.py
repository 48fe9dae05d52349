"""What the service tells its operator: one JSON object a line on standard error, never anything of a row."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

_lock = threading.Lock()


def tell(event: str, **facts: Any) -> None:
    """Write a line.

    Parameters
    ----------
    event : str
        What happened, in a word.
    **facts
        What an operator wants to know of it; no ids, labels or values of rows.
    """
    now = time.time()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
    line = json.dumps({"at": at, "event": event, **facts}) + "\n"
    with _lock:
        sys.stderr.write(line)
        sys.stderr.flush()
