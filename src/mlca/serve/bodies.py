"""Bodies of requests and of answers; what is large of either is the work of a thread of its own.

The event loop has everybody to look after. What it does itself takes a few milliseconds at most; sixteen MiB of JSON
would take a second, in which nobody else heard anything. `Aside` has one thread for all of that: two of them would
only take turns, and each of them a turn from the event loop. Python changes threads only between steps of Python, so
large JSON is read and written in small steps.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from mlca.serve.naming import excerpt
from mlca.serve.refusals import RefusalError

MOST_BYTES = 16 * 2**20
# Seconds in which a body must have come.
BODY_SECONDS = 20.0
# Bytes that are read, or about as many written, by the event loop itself.
AT_ONCE = 2**18
# Bytes that may wait to be read or written.
_MOST_WAITING = 8 * MOST_BYTES
# Lists and objects that a large body may seem to have: rows have two or three each. Millions of empty ones would be
# read in a single step, and looked through by Python's collector again and again.
_MOST_BRACKETS = 500_000

AsideArguments = ParamSpec("AsideArguments")
Done = TypeVar("Done")


class Aside:
    """A thread for what is large."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "mlca-aside")
        self._waiting = 0

    async def __call__(
        self,
        size: int,
        do: Callable[AsideArguments, Done],
        *args: AsideArguments.args,
        **options: AsideArguments.kwargs,
    ) -> Done:
        """Do something at once, or in the thread if it is about more bytes than the event loop should handle."""
        if size <= AT_ONCE:
            return do(*args, **options)
        if self._waiting + size > _MOST_WAITING:
            raise RefusalError(429, "too many large requests wait", "send fewer at a time", retry_after=1)
        self._waiting += size
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, partial(do, *args, **options))
        finally:
            self._waiting -= size

    def stop(self) -> None:
        """End the thread; what nobody waits for any more is left undone."""
        self._pool.shutdown(cancel_futures=True)


async def read_body(request: Request) -> bytes:
    """Read the body of a request that is to hold JSON."""
    sent: bytes = request.scope["mlca.headers"].get(b"content-type", b"")
    kind = sent.decode("latin-1").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusalError(415, f"the body is {kind[:40] or 'of no type'!r}", "send Content-Type: application/json")
    return await _receive_all(request.receive)


async def _receive_all(receive: Receive) -> bytes:
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
                    problem = f"the body is larger than {MOST_BYTES // 2**20} MiB"
                    raise RefusalError(413, problem, "send the rows in several requests")
    except TimeoutError:
        raise RefusalError(408, f"the body did not come within {BODY_SECONDS:.0f} seconds", "send it faster") from None
    return b"".join(parts)


def parse_object(body: bytes, fields: tuple[str, ...]) -> dict[str, Any]:
    """Read a JSON object that has no other fields than these.

    Examples
    --------
    >>> parse_object(b'{"ids": ["a"]}', ("ids", "wait"))
    {'ids': ['a']}
    >>> parse_object(b'{"id": "a"}', ("ids", "wait"))
    Traceback (most recent call last):
    mlca.serve.refusals.RefusalError: there is no field 'id' here; send ids, wait
    """
    try:
        text = body.decode("utf-8-sig")
        plain = _decode(text) if len(body) <= AT_ONCE else _decode_large(text)
    except RecursionError:
        raise RefusalError(422, "the JSON is nested too deeply", "send rows as the documentation shows") from None
    except ValueError as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise RefusalError(
            422, f"the body is no JSON{where}", "send JSON in UTF-8; NaN and Infinity are none"
        ) from None
    if not isinstance(plain, dict):
        raise RefusalError(422, "the body is no JSON object", f"send an object with {', '.join(fields)}")
    for name in plain:
        if name not in fields:
            unknown = excerpt(name)
            raise RefusalError(422, f"there is no field {unknown!r} here", f"send {', '.join(fields)}", field=unknown)
    return plain


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, of which each name must be there once: JSON leaves open which of two values would count."""
    plain = dict(pairs)
    if len(plain) < len(pairs):
        seen: set[str] = set()
        twice = excerpt(next(name for name, _ in pairs if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
        raise RefusalError(422, f"an object has {twice!r} twice", "send each name once", field=twice)
    return plain


# Made once: json.dumps and json.loads would make theirs anew for every request.
encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_once_each).decode
# With a step of Python for every number, between two of which the event loop can have its turn.
_decode_slowly = json.JSONDecoder(
    parse_constant=_refuse_constant,
    object_pairs_hook=_once_each,
    parse_int=lambda digits: int(digits),
    parse_float=lambda digits: float(digits),
).decode


def _decode_large(text: str) -> Any:
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        problem = f"the body has more than {_MOST_BRACKETS:,} brackets and braces"
        raise RefusalError(413, problem, "send the rows in several requests")
    return _decode_slowly(text)


def encode_rows(about: dict[str, Any], rows: Iterable[dict[str, Any]]) -> bytes:
    """Return an answer about rows as it is sent, written row by row.

    Examples
    --------
    >>> encode_rows({"position": 7}, [{"id": "a"}, {"id": "b"}])
    b'{"position":7,"rows":[{"id":"a"},{"id":"b"}]}'
    """
    return f'{encode_json(about)[:-1]},"rows":[{",".join(map(encode_json, rows))}]}}'.encode()
