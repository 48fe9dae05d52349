"""Request bodies, received within size and time limits and parsed as strict JSON.

Large bodies are parsed in the thread of `worker_threads.SideWorker`. Python switches threads only between bytecode
instructions, so a large body is parsed with a Python call for each number.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from mlca.serve.request_errors import RequestError, excerpt
from mlca.serve.worker_threads import AT_ONCE

MOST_BYTES = 16 * 2**20
# Seconds within which a body must arrive.
BODY_SECONDS = 20.0
# Largest number of opening brackets and braces in a large body; a row has two or three. Millions of empty lists would
# be parsed without a thread switch, and traversed repeatedly by Python's garbage collector.
_MOST_BRACKETS = 500_000


async def read_body(request: Request) -> bytes:
    """Read the JSON body of a request."""
    sent: bytes = request.scope["mlca.headers"].get(b"content-type", b"")
    kind = sent.decode("latin-1").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, f"the body has the content type {kind[:40]!r}", "send Content-Type: application/json")
    return await _receive_all(request.receive)


async def _receive_all(receive: Receive) -> bytes:
    """Return the body; drain an oversized body so that the client can read the response."""
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
                size += len(parts[-1])
                if size > MOST_BYTES:
                    parts.clear()
                if size > 2 * MOST_BYTES or (size > MOST_BYTES and not more):
                    problem = f"the body is larger than {MOST_BYTES // 2**20} MiB"
                    raise RequestError(413, problem, "send the rows in several requests")
    except TimeoutError:
        raise RequestError(
            408, f"the body did not arrive within {BODY_SECONDS:.0f} seconds", "check the connection, or send less"
        ) from None
    return b"".join(parts)


def parse_object(body: bytes, fields: tuple[str, ...]) -> dict[str, Any]:
    """Parse a JSON object; reject fields that are not in `fields`.

    Examples
    --------
    >>> parse_object(b'{"ids": ["a"]}', ("ids", "wait"))
    {'ids': ['a']}
    >>> parse_object(b'{"id": "a"}', ("ids", "wait"))
    Traceback (most recent call last):
    mlca.serve.request_errors.RequestError: the body has the unknown field 'id'; send ids, wait
    """
    try:
        text = body.decode("utf-8-sig")
        plain = _decode(text) if len(body) <= AT_ONCE else _decode_large(text)
    except RecursionError:
        raise RequestError(422, "the JSON is nested too deeply", "send rows as the documentation shows") from None
    except ValueError as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise RequestError(
            422, f"the body is not JSON{where}", "send JSON in UTF-8, without NaN and Infinity"
        ) from None
    if not isinstance(plain, dict):
        raise RequestError(422, "the body is not a JSON object", f"send an object with {', '.join(fields)}")
    for name in plain:
        if name not in fields:
            unknown = excerpt(name)
            raise RequestError(
                422, f"the body has the unknown field {unknown!r}", f"send {', '.join(fields)}", field=unknown
            )
    return plain


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build the dict of a JSON object; reject duplicate keys, which JSON leaves undefined."""
    plain = dict(pairs)
    if len(plain) < len(pairs):
        seen: set[str] = set()
        twice = excerpt(next(name for name, _ in pairs if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
        raise RequestError(422, f"an object has the key {twice!r} twice", "send each key once", field=twice)
    return plain


# Created once: json.loads would create a decoder per request.
_decode = json.JSONDecoder(parse_constant=_reject_constant, object_pairs_hook=_once_each).decode
# Calls a Python function for each number, so that Python can switch to the event loop's thread in between.
_decode_slowly = json.JSONDecoder(
    parse_constant=_reject_constant,
    object_pairs_hook=_once_each,
    parse_int=lambda digits: int(digits),
    parse_float=lambda digits: float(digits),
).decode


def _decode_large(text: str) -> Any:
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        problem = f"the body has more than {_MOST_BRACKETS:,} brackets and braces"
        raise RequestError(413, problem, "send the rows in several requests")
    return _decode_slowly(text)
