"""The process that runs the service: the socket, the HTTP server and graceful shutdown."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mlca.serve.operator_log import flush, log_event, start_writing
from mlca.serve.routes import make_app
from mlca.serve.service import Service
from mlca.serve.startup import ServiceSettings
from mlca.serve.tokens import Tokens

# Seconds within which open requests must finish after SIGTERM.
_DRAIN = 20
# Time limits, in seconds, for the headers of a request and for a client that does not read its response.
_HEADER_SECONDS = 20.0
_READING_SECONDS = 30.0
# Largest number of bytes outside the body: headers and trailers (browsers and proxies send a few thousand bytes), plus
# an allowance per byte of the body for the lengths of chunks.
_MOST_HEAD = 2**16
_MOST_A_BYTE = 8
_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 51\r\nconnection: close\r\n\r\n"
    b"the head of the request is too large; send it short"
)


def run(settings: ServiceSettings, host: str, port: int, tokens: Path | None) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Parameters
    ----------
    settings : ServiceSettings
        The settings of the service.
    host, port : str, int
        The address to listen on; port 0 selects a free port.
    tokens : Path or None
        The token file; without it, the host must be a loopback address.

    Raises
    ------
    ValueError
        If the service cannot start; the message includes the remedy.
    """
    if tokens is None and not _is_loopback(host):
        raise ValueError(
            f"without tokens the service listens on this machine only, not on {host}; create a token (mlca "
            "serve token) and pass the file: --tokens FILE"
        )
    os.umask(0o077)
    # By default, responses would wait up to five milliseconds for a computing thread.
    sys.setswitchinterval(0.0005)
    known = None if tokens is None else Tokens(tokens)
    listener = _listen(host, port)
    try:
        service = Service(settings)
    except BaseException:
        listener.close()
        raise
    address, number = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    print(f"mlca serve: http://{shown}:{number}/", flush=True)
    if tokens is None:
        print("No tokens: only requests from this machine are accepted", flush=True)
    start_writing()
    log_event("started", host=address, port=number, position=service.log.head.position, tokens=tokens is not None)
    config = uvicorn.Config(
        make_app(service, known),
        http=_Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # do not trust forwarded client addresses
        lifespan="on",
        timeout_graceful_shutdown=_DRAIN,
        timeout_keep_alive=30,
    )
    # uvicorn raises the signal again after shutdown; these handlers ignore it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    _Server(config, service).run(sockets=[listener])
    flush()


class _WritesTogether:
    """A transport that sends headers and body together, which halves the cost of writing.

    Parameters
    ----------
    transport : asyncio.Transport
        The underlying transport.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data together with later writes in the same turn of the event loop."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Send the buffered data, and close the transport."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class _Protocol(HttpToolsProtocol):
    """An HTTP protocol with limits for slow clients and large headers, which uvicorn lacks."""

    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _in_head = True
    # The number of requests begun; for the latest request, the number of bytes in and outside its body.
    _n_requests = _n_body = _n_beside = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the headers of the first request."""
        super().connection_made(_WritesTogether(transport, self.loop))  # type: ignore[arg-type]
        self._head = self.loop.call_later(_HEADER_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Process received data; limit the size of headers and the time until they are complete."""
        request, body = self._n_requests, self._n_body
        super().data_received(data)
        self._n_beside += len(data) - (self._n_body - body) if request == self._n_requests else -self._n_beside
        if self._n_beside > _MOST_HEAD + _MOST_A_BYTE * self._n_body and not self.transport.is_closing():
            self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()
        elif self._in_head and self._head is None:
            self._head = self.loop.call_later(_HEADER_SECONDS, self.transport.close)

    def on_message_begin(self) -> None:
        """Count a request."""
        self._in_head = True
        self._n_requests += 1
        self._n_body = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Count bytes of the body, which has its own limit."""
        self._n_body += len(body)
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """Check the host of an absolute URL; end the timeout, since `asgi` has its own limits."""
        authority = b"" if self.url.startswith(b"/") else self.url.partition(b"://")[2].partition(b"/")[0]
        if authority and (b"host", authority) not in self.headers:
            raise ValueError("the URL and the Host header name different hosts")  # uvicorn responds with 400
        self._in_head = False
        if self._head is not None:
            self._head.cancel()
            self._head = None
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Start the timeout for a client that reads more slowly than the service writes."""
        super().pause_writing()
        self._reading = self.loop.call_later(_READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """End the timeout: the client has read nearly everything."""
        if self._reading is not None:
            self._reading.cancel()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all timeouts of a closed connection."""
        for waiting in (self._head, self._reading):
            if waiting is not None:
                waiting.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """A server that ends event streams on shutdown, because they would not end otherwise."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, finish open requests, then stop the service."""
        log_event("stopping")
        self._service.events.close()
        await super().shutdown(sockets)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    try:
        family: Any = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {host}, port {port} ({error.strerror or error}); choose another --port"
        ) from None
