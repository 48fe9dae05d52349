"""Server-sent events for the web page and other clients; slow listeners lose events."""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import AsyncIterator
from typing import Any

from mlca.serve.request_errors import RequestError

MOST_LISTENERS = 100
_WAITING = 16
# Seconds after which a silent stream sends a comment, so that proxies do not close it.
_HEARTBEAT = 15.0


class Events:
    """Sends events to all listeners; must only be used in the event loop."""

    def __init__(self) -> None:
        # Weak references: a listener disappears when its stream, which alone owns it, ends.
        self._listeners: weakref.WeakSet[asyncio.Queue[str | None]] = weakref.WeakSet()
        self._closed = False

    @property
    def has_listeners(self) -> bool:
        """Whether any client listens to events."""
        return bool(self._listeners)

    def publish(self, name: str, facts: dict[str, Any]) -> None:
        """Send an event to all listeners; a listener with a full queue loses its oldest event."""
        text = f"event: {name}\ndata: {json.dumps(facts)}\n\n"
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(text)

    def listen(self, first: dict[str, Any]) -> AsyncIterator[str]:
        """Return a stream of events that begins with `first`, the current state."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise RequestError(
                429, "too many clients listen to events", "close some pages of this service", retry_after=10
            )
        listener: asyncio.Queue[str | None] = asyncio.Queue(_WAITING)
        self._listeners.add(listener)
        if self._closed:
            listener.put_nowait(None)
        return self._stream(listener, first)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(None)

    async def _stream(self, listener: asyncio.Queue[str | None], first: dict[str, Any]) -> AsyncIterator[str]:
        try:
            yield f"retry: 1000\nevent: state\ndata: {json.dumps(first)}\n\n"
            while True:
                try:
                    async with asyncio.timeout(_HEARTBEAT):
                        text = await listener.get()
                except TimeoutError:
                    text = ": still here\n\n"
                if text is None:
                    return
                yield text
        finally:
            self._listeners.discard(listener)
