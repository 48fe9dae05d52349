"""The header of a model file: strict JSON, and the checksum that binds it to the arrays."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

HEADER = "mlca.json"


def read_json(raw: bytes) -> dict[str, Any]:
    """Read a JSON object; ValueError if it is anything that `json.dumps` would not have written."""
    try:
        found = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{HEADER} is damaged ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{HEADER} does not describe an mlca model")
    return found


def checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 over a header, its own checksum left out, and all arrays with their names, types and shapes.

    Examples
    --------
    >>> import numpy as np
    >>> first = checksum({"version": 2}, {"counts": np.array([1, 2])})
    >>> first == checksum({"checksum": "any", "version": 2}, {"counts": np.array([1, 2])})
    True
    >>> first == checksum({"version": 2}, {"counts": np.array([[1, 2]])})
    False
    """
    digest = hashlib.sha256()
    digest.update(_canonical({name: value for name, value in header.items() if name != "checksum"}))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(_canonical([name, array.dtype.str, array.shape]))
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _canonical(value: Any) -> bytes:
    """Return JSON in the one form that does not depend on who wrote it, and an end that JSON cannot contain."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\0"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is beyond all numbers")
    return number


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
