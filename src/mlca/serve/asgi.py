"""Steps common to all requests: ID, host check, token check, time limit, error responses.

Errors are sent as JSON with problem, remedy, row and field, without internal details. The request ID is in both the
response and the operator's log.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from mlca.serve.measures import Traffic
from mlca.serve.operator_log import log_event
from mlca.serve.request_errors import RequestError, unavailable
from mlca.serve.responses import JSONAnswer
from mlca.serve.tokens import TokenGuard

# Time limit for a request, in seconds.
ANSWER_SECONDS = 60.0

# Request IDs must be unique but not secret, so a counter is enough; reading random bits could cause a thread switch.
_PROCESS, _numbers = secrets.token_hex(4), count(1)
_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
# Security-relevant headers that must not be repeated: a proxy and this service might use different values.
_NOT_REPEATED = (b"host", b"origin", b"authorization", b"content-type")
_NO_PAGE = b"default-src 'none'; frame-ancestors 'none'"

Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """The ASGI application: assigns request IDs, finds handlers, and adds security headers.

    Handlers are looked up in a dict, because a pattern-matching router and a framework's middleware would take as long
    as a prediction.

    Parameters
    ----------
    routes : dict
        The handlers by path and method.
    service : callable
        Returns a context manager that starts the service and, at the end, stops it.
    traffic : Traffic
        Counts requests and their durations.
    open_hosts : bool
        Whether any host name is accepted, rather than only loopback names. Must be False without tokens: otherwise a
        web page whose host name resolves to this machine could use the service through a browser.
    """

    def __init__(
        self,
        routes: dict[str, dict[str, Handler]],
        service: Callable[[], AbstractAsyncContextManager[None]],
        traffic: Traffic,
        *,
        open_hosts: bool,
    ) -> None:
        self._routes, self._service, self._traffic, self._open_hosts = routes, service, traffic, open_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or the server's start and stop messages."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:  # uvicorn sends no other scope type, because `server` disables WebSockets
            raise NotImplementedError(scope["type"])

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._service():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        scope["mlca.headers"] = headers = dict(scope["headers"])
        scope["mlca.request"] = request_id = _id_of(headers)
        status = 499  # the client disconnected before the response

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {name for name, _ in message["headers"]}
                policy = [] if b"content-security-policy" in names else [(b"content-security-policy", _NO_PAGE)]
                caching = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
                added = [(b"x-request-id", request_id.encode()), *_HEADERS, *policy, *caching]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            rejection = _repeated(scope) or self._misdirected(headers)
            if rejection is not None:
                response = _error_response(rejection, request_id)
            else:
                response = await self._handler(scope)(Request(scope, receive))
            await response(scope, receive, send_with_headers)
        finally:
            route = scope.get("mlca.route", "other")
            seconds = time.perf_counter() - began
            self._traffic.count_request(route, status, seconds)
            log_event(
                "request",
                at_once=False,
                request=request_id,
                method=scope["method"],
                route=route,
                status=status,
                ms=round(1000 * seconds, 2),
                token=scope.get("mlca.token"),
                rows=scope.get("mlca.rows"),
            )

    def _handler(self, scope: Scope) -> Handler:
        methods = self._routes.get(scope["path"], {})
        found = methods.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if found is not None:
            return found
        status, problem = (405, "this path does not support this method") if methods else (404, "no such path")

        async def reject(request: Request) -> Response:
            rejection = RequestError(status, problem, "see /openapi.json for paths and methods")
            response = _error_response(rejection, request.scope["mlca.request"])
            if methods:
                response.headers["allow"] = ", ".join(methods)
            return response

        return reject

    def _misdirected(self, headers: dict[bytes, bytes]) -> RequestError | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._open_hosts and not _LOOPBACK.fullmatch(host):
            remedy = "use http://localhost or http://127.0.0.1, or start the service with --tokens"
            return RequestError(421, "without tokens the service accepts requests from this machine only", remedy)
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2] != host:
            return RequestError(403, "requests from web pages of other sites are rejected", "send it from a script")
        return None


def _repeated(scope: Scope) -> RequestError | None:
    names = [name for name, _ in scope["headers"]]
    for name in _NOT_REPEATED:
        if names.count(name) > 1:
            return RequestError(400, f"the request has several {name.decode()} headers", "send only one")
    return None


def _id_of(headers: dict[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else f"{_PROCESS}-{next(_numbers)}"


def guarded(handler: Handler, route: str, scope: str | None, tokens: TokenGuard | None) -> Handler:
    """Add a token check, a time limit and error responses to a handler."""

    async def answer(request: Request) -> Response:
        request.scope["mlca.route"] = route
        request_id = request.scope["mlca.request"]
        try:
            if scope is not None and tokens is not None:
                await _admit(request, scope, tokens)
            async with asyncio.timeout(ANSWER_SECONDS):
                return await handler(request)
        except RequestError as rejection:
            return _error_response(rejection, request_id)
        except TimeoutError:
            late = unavailable(
                f"no response within {ANSWER_SECONDS:.0f} seconds",
                "rows may have been accepted: send them again with the same IDs",
            )
            return _error_response(late, request_id)
        except ClientDisconnect:
            return Response(status_code=499)  # the client has disconnected and cannot receive this
        except Exception as error:
            log_event("fault", request=request_id, route=route, kind=type(error).__name__, place=_place(error))
            inside = RequestError(
                500, "internal error of the service", f"report the request ID {request_id} to the service's operator"
            )
            return _error_response(inside, request_id)

    return answer


async def _admit(request: Request, scope: str, tokens: TokenGuard) -> None:
    given: bytes = request.scope["mlca.headers"].get(b"authorization", b"")
    kind, _, rest = given.decode("latin-1").partition(" ")
    secret = rest.strip() if kind.lower() == "bearer" else ""
    address = request.client.host if request.client is not None else ""
    try:
        holder = await tokens.holder(secret, address) if secret else None
    except (OSError, ValueError) as error:  # fail closed: an old list might contain a revoked token
        log_event("trouble", problem=f"the tokens cannot be read: {error}")
        raise unavailable(
            "the service cannot read its tokens now", "ask the operator to check the token file"
        ) from None
    if holder is None:
        raise RequestError(401, "the token is missing or unknown", "send Authorization: Bearer TOKEN")
    request.scope["mlca.token"] = holder.name
    request.scope["mlca.scopes"] = holder.scopes
    require_scope(request, scope, "this route")


def require_scope(request: Request, scope: str, purpose: str) -> None:
    """Reject a request whose token lacks a scope; without tokens every scope is granted.

    Parameters
    ----------
    request : Request
        The request, after its token was looked up.
    scope : str
        The required scope.
    purpose : str
        The action that needs the scope, for the error message.
    """
    if scope not in request.scope.get("mlca.scopes", (scope,)):
        raise RequestError(
            403, f"this token lacks the scope {scope!r}, which {purpose} needs", "use a token that has it"
        )


def _error_response(rejection: RequestError, request_id: str) -> Response:
    headers = {}
    if rejection.retry_after is not None:
        headers["retry-after"] = str(rejection.retry_after)
    if rejection.status == 401:
        headers["www-authenticate"] = "Bearer"
    if rejection.status in (408, 413):
        headers["connection"] = "close"  # the rest of the body is not read
    content = {"error": rejection.to_json(), "request": request_id}
    return JSONAnswer(content, rejection.status, headers)


def _place(error: BaseException) -> str:
    """Return the file name and line where an error was raised, for the operator's log."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def read_whole(plain: dict[str, Any], name: str, default: int, most: int) -> int:
    """Read an integer field from 0 to `most`; return the default if it is missing."""
    value = plain.get(name, default)
    if type(value) is not int or not 0 <= value <= most:
        raise RequestError(
            422, f"{name} is not a whole number from 0 to {most:,}", "leave it out or correct it", field=name
        )
    return value


def read_flag(plain: dict[str, Any], name: str) -> bool:
    """Read a boolean field; return False if it is missing."""
    value = plain.get(name, False)
    if type(value) is not bool:
        raise RequestError(422, f"{name} is neither true nor false", "leave it out or correct it", field=name)
    return value
