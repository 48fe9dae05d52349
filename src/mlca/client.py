"""Client for `mlca serve` that needs only the standard library.

>>> from mlca.client import Client
>>> with Client("http://127.0.0.1:8000", token="...") as client:        # doctest: +SKIP
...     client.learn([{"id": "r1", "x": {"temp": 3.1, "site": "A"}, "labels": ["storm"]}])
...     client.predict([{"x": {"temp": 3.0, "site": "B"}}])["rows"][0]["labels"]

Each row has an ID and is learned only once, even if it is sent several times. So the client can safely repeat requests
that get no response. Rows without an ID get one before the first attempt.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, quote, urlsplit
from weakref import WeakSet

from mlca.jsonrows import Row, plain_names, plain_row, plain_x

__all__ = ["Batches", "Client", "Event", "ServiceError"]

# Status codes for which a request is sent again.
_AGAIN = frozenset({408, 429, 502, 503, 504})
# Characters allowed in a host or path; others must be percent-encoded.
_SENDABLE = re.compile(r"[!-~]*")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# Fields that the response to accepted rows must have.
_TAKEN = ("position", "learned", "duplicates")
# Largest accepted response, and size of one read, in bytes; the Content-Length header is not trusted.
_LARGEST_ANSWER, _BLOCK = 2**30, 2**16
# Largest accepted event, in bytes; a "state" event with 10,000 long column names has about 20 million.
_LARGEST_EVENT = 2**26


class ServiceError(Exception):
    """The service rejected a request, or could not be reached in time.

    Attributes
    ----------
    status : int
        The HTTP status of the response; 0 if there was no response.
    row, field : int or None, str or None
        The index of the invalid row in the request, and the name of its invalid field; None if not reported.
    """

    def __init__(self, status: int, problem: str, row: int | None = None, field: str | None = None) -> None:
        super().__init__(problem)
        self.status, self.row, self.field = status, row, field


class Event(NamedTuple):
    """A service event: "state" (every second), "label", "alarm", "forgotten" or "rebuilt"."""

    name: str
    facts: dict[str, Any]


class _Held:
    """Holder of a thread's connection, which is closed when the thread ends."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class Client:
    """Client of one service; threads may share it, because each gets its own connection.

    Parameters
    ----------
    url : str
        The address, such as ``http://127.0.0.1:8000``; it may have a path, as behind a proxy.
    token : str, optional
        A token created by `mlca serve token`.
    timeout : float, default=30
        The timeout of one attempt, in seconds.
    patience : float, default=60
        The time, in seconds, during which a request is repeated while the service is busy, restarting or unreachable.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 30.0, patience: float = 60.0) -> None:
        parts = _parts_of(url)
        if token is not None and not (token.isascii() and token.isprintable() and token):
            raise ValueError("the token is empty or contains invalid characters; pass one from `mlca serve token`")
        self._parts, self._token = parts, token
        self._timeout, self._patience = timeout, patience
        self._of_thread = threading.local()
        self._all: WeakSet[_Held] = WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        with suppress(KeyError):  # raised by `pop` when no connection is left
            while True:
                self._all.pop().connection.close()
        self._of_thread = threading.local()

    def learn(self, rows: Iterable[Row]) -> dict[str, Any]:
        """Send rows to learn; return once the service has stored them durably.

        Parameters
        ----------
        rows : iterable of mappings
            Each row has `x`, `labels`, and optionally `id`. `x` is a list or array of numbers, or a mapping or a
            DataFrame row that maps column names to numbers, strings, dates or booleans, with None or NaN for missing
            values. `labels` is a collection of names, or a dict of name to True or False.

        Returns
        -------
        dict
            The `position` and `generation` of the log, the number of rows `learned`, and the IDs of the `duplicates`.
        """
        return self._post("/v1/learn", {"rows": [plain_row(row) for row in rows]}, _TAKEN)

    def predict(
        self,
        rows: Iterable[Row],
        *,
        top: int = 5,
        threshold: float | Mapping[str, float] | None = None,
        objective: str | None = None,
        keep: bool = False,
        min_position: int = 0,
        min_generation: int = 0,
    ) -> dict[str, Any]:
        """Predict the labels of rows.

        Parameters
        ----------
        rows : iterable of mappings
            Each row has `x`, and optionally `id`.
        top : int, default=5
            The number of most likely labels per row whose probabilities are returned.
        threshold : float or mapping of label to float, optional
            The probability above which labels are predicted, for all labels or by label (0.5 for others). Rows may
            then have no label.
        objective : {"exact", "f1", "hamming"}, optional
            The measure that the chosen labels should optimise. Default: the objective of the service's model. Cannot
            be combined with `threshold`.
        keep : bool, default=False
            Whether the service keeps the rows until `labels` sends their labels. This requires a token with the scope
            `learn`.
        min_position, min_generation : int, default=0
            The position and generation that the model must have reached, such as those returned by `learn`.

        Returns
        -------
        dict
            The `position` and `generation` of the model, and `rows`: the `id`, `labels`, `probabilities` and `novelty`
            of each row.
        """
        plain = [plain_row(row, with_id=keep) for row in rows]
        options: dict[str, Any] = {"top": top, "keep": keep}
        options |= {"min_position": min_position, "min_generation": min_generation}
        if threshold is not None:
            options["threshold"] = dict(threshold) if isinstance(threshold, Mapping) else threshold
        if objective is not None:
            options["objective"] = objective
        return self._post("/v1/predict", {"rows": plain, **options})

    def labels(self, rows: Iterable[Row]) -> dict[str, Any]:
        """Send labels for rows that `predict(..., keep=True)` kept; return the same as `learn`.

        Parameters
        ----------
        rows : iterable of mappings
            Each row has `id` and `labels`.
        """
        plain = [{"id": row["id"], "labels": plain_names(row["labels"])} for row in rows]
        return self._post("/v1/labels", {"rows": plain}, _TAKEN)

    def explain(self, x: Any = None, *, id: str | None = None, top: int = 5) -> dict[str, Any]:
        """Explain the prediction for the features `x`, or for a stored row with the given ID.

        ::

            for label in client.explain({"wind": 20.0, "site": "A"})["labels"]:
                print(label)
        """
        return self._post("/v1/explain", {"top": top} | ({"x": plain_x(x)} if id is None else {"id": id}))

    def forget(self, ids: Iterable[str], *, wait: bool = False) -> dict[str, Any]:
        """Erase rows; the model is rebuilt without them.

        Parameters
        ----------
        ids : iterable of str
            The IDs of the rows.
        wait : bool, default=False
            Whether to wait for the rebuild, for a few seconds at most.

        Returns
        -------
        dict
            The number of rows `forgotten`, the `unknown` IDs, whether the model is `rebuilt`, and the `generation` that
            it has after the rebuild. Until then, `rebuild` shows the progress: `position` out of `end` rows of the log.
        """
        return self._post("/v1/forget", {"ids": plain_names(ids), "wait": wait})

    def row_state(self, id: str) -> str:
        """Return the state of an ID: "unknown", "waiting", "learned" or "forgotten"."""
        return str(self._ask("GET", f"/v1/rows?id={quote(id, safe='')}", fields=("state",))["state"])

    def model(self) -> dict[str, Any]:
        """Describe the model: parameters, columns, labels with counts, nodes, position."""
        return self._ask("GET", "/v1/model", fields=("columns",))

    def events(self) -> Iterator[Event]:
        """Yield events indefinitely; a broken stream is reopened, starting with a "state" event."""
        while True:
            connection = self._connect(timeout=60.0)
            try:
                connection.request("GET", self._parts.path.rstrip("/") + "/v1/events", headers=self._headers())
                answer = connection.getresponse()
                if answer.status == 200:
                    yield from _read_events(answer)
                elif answer.status not in _AGAIN:
                    raise _refusal(answer.status, _read(answer))
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(1.0)

    def batches(self, size: int = 100, seconds: float = 1.0) -> Batches:
        """Return a stream that sends rows in the background, in batches; see `Batches`."""
        return Batches(self, size, seconds)

    def _post(self, path: str, body: dict[str, Any], fields: tuple[str, ...] = ()) -> dict[str, Any]:
        return self._ask("POST", path, json.dumps(body, allow_nan=False).encode(), fields)

    def _ask(self, method: str, path: str, body: bytes | None = None, fields: tuple[str, ...] = ()) -> dict[str, Any]:
        """Repeat a request until its response is final; raise ServiceError if fields are missing."""
        deadline = time.monotonic() + self._patience
        pause = _FIRST_PAUSE
        while True:
            status, content, retry_after = self._attempt(method, path, body)
            if status == 200:
                answer = _answer(content)
                if not answer.keys() >= set(fields):
                    raise _refusal(200, content)
                return answer
            wait = max(pause, retry_after) * random.uniform(0.5, 1.5)
            if (status and status not in _AGAIN) or time.monotonic() + wait > deadline:
                raise _refusal(status, content)
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        """Send a request once; return status (0: no response), content and seconds to wait."""
        held: _Held | None = getattr(self._of_thread, "held", None)
        if held is None:
            held = self._of_thread.held = _Held(self._connect(self._timeout))
            self._all.add(held)
        connection = held.connection
        try:
            headers = self._headers() | ({"Content-Type": "application/json"} if body is not None else {})
            connection.request(method, self._parts.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            retry_after = answer.headers.get("Retry-After", "")
            return answer.status, _read(answer), float(retry_after) if retry_after.isdecimal() else 0.0
        except (OSError, http.client.HTTPException) as error:
            connection.close()  # reopened by the next request
            return 0, str(error or type(error).__name__).encode(), 0.0

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        assert self._parts.hostname is not None
        return kind(self._parts.hostname, self._parts.port, timeout=timeout)

    def _headers(self) -> dict[str, str]:
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}


class Batches:
    """Sends rows to a service, which learns them: in the background, in batches and in order.

    ::

        with client.batches() as stream:
            for x, labels in measurements:
                stream.learn(x, labels)

    The end of the `with` block waits until all rows are stored durably. If the service rejects rows, the next call
    raises the error.

    Parameters
    ----------
    client : Client
        The client of the service.
    size : int
        The number of rows per request. `learn` blocks while ten times this number wait to be sent.
    seconds : float
        The longest time, in seconds, that a row waits for its batch to fill.
    """

    def __init__(self, client: Client, size: int, seconds: float) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        self._client, self._size, self._seconds = client, size, seconds
        self._rows: list[Row] = []
        self._changed = threading.Condition()
        self._closing = False
        self._error: BaseException | None = None
        self.position = 0
        self.acknowledged = 0
        self._thread = threading.Thread(target=self._run, name="mlca-batches", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(ServiceError):  # the exception raised in the with block is more informative
                self.close()

    def learn(self, x: Any, labels: Iterable[str], id: str | None = None) -> str:
        """Add a row to the stream; return its ID."""
        row = plain_row({"x": x, "labels": labels} | ({} if id is None else {"id": id}))
        with self._changed:
            self._changed.wait_for(lambda: len(self._rows) < 10 * self._size or self._error or self._closing)
            self._raise()
            if self._closing:
                raise ValueError("this stream of batches is closed; open another")
            self._rows.append(row)
            self._changed.notify_all()
        return str(row["id"])

    def close(self) -> None:
        """Send the remaining rows; return once the service has stored them durably."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        with self._changed:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._rows or self._closing)
                if not self._rows:
                    return
                self._changed.wait_for(lambda: len(self._rows) >= self._size or self._closing, self._seconds)
                batch = self._rows[: self._size]
            try:
                self.position = self._client.learn(batch)["position"]
            except Exception as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            with self._changed:
                self.acknowledged += len(batch)
                del self._rows[: len(batch)]
                self._changed.notify_all()


def _parts_of(url: str) -> SplitResult:
    """Return the parts of the service's address; raise ValueError if it is invalid."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        sendable = _SENDABLE.fullmatch(host) and _SENDABLE.fullmatch(parts.path)
        sound = parts.scheme in ("http", "https") and host and parts.port != 0 and sendable
    except ValueError:  # an invalid port or host name
        sound = None
    if not sound:
        raise ValueError(f"{url!r} is not the address of a service; expected something like http://127.0.0.1:8000")
    return parts


def _read(answer: http.client.HTTPResponse) -> bytes:
    """Return the content of a response; raise HTTPException if it is truncated or too large."""
    content = bytearray()
    while block := answer.read(_BLOCK):
        content += block
        if len(content) > _LARGEST_ANSWER:
            raise http.client.HTTPException(f"a response of more than {_LARGEST_ANSWER} bytes")
    if answer.length:
        raise http.client.IncompleteRead(bytes(content), answer.length)
    return bytes(content)


def _answer(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):  # perhaps the error page of a proxy
        answer = None
    if not isinstance(answer, dict):
        raise _refusal(200, content)
    return answer


def _refusal(status: int, content: bytes) -> ServiceError:
    text = content.decode(errors="replace")
    if status == 0:
        return ServiceError(0, f"the service cannot be reached ({text}); is it running?")
    try:
        error = json.loads(text)["error"]
        place = "" if error["row"] is None else f"row {error['row']}: "
        return ServiceError(status, f"{place}{error['problem']}; {error['remedy']}", error["row"], error["field"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ServiceError(status, f"the response has status {status} and is not from mlca serve: {text[:200]}")


def _read_events(answer: http.client.HTTPResponse) -> Iterator[Event]:
    """Yield the server-sent events of a response; a truncated event is dropped."""
    name, data = "message", ""
    while line := answer.readline(_LARGEST_EVENT):
        if len(data) + len(line) >= _LARGEST_EVENT:
            raise ServiceError(200, f"got an event of more than {_LARGEST_EVENT} bytes, which mlca serve never sends")
        text = line.decode(errors="replace").rstrip("\r\n")
        if text.startswith("event: "):
            name = text[7:]
        elif text.startswith("data: "):
            data += text[6:]
        elif not text and data:
            yield Event(name, _answer(data.encode()))
            name, data = "message", ""
