"""Connections that come to nothing: a client that sends its headers slowly, or reads its answer slowly.

uvicorn waits without end for the headers of a request and for a client to take an answer. Each such
connection costs memory, so both have a limit of time here; bodies have theirs in
`app.web.middleware.body_limits`.
"""

from __future__ import annotations

import asyncio
import socket
import struct

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_TIMEOUT_S = 15.0
"""From a request's first byte, or the opening of the connection, to the end of its headers."""
UNREAD_TIMEOUT_S = 30.0
"""How long a client may leave an answer unread that fills the buffers."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""To linger no second: what the kernel holds for the client is dropped with the connection."""


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with both limits; a connection past one of them is cut.

    Over h11: its other parser, httptools, loses the body of a request that offers HTTP/2 (`Upgrade: h2c`), as
    Java's client does.
    """

    headers_timeout_s = HEADERS_TIMEOUT_S
    unread_timeout_s = UNREAD_TIMEOUT_S

    _headers_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Open, and wait for the first headers."""
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Take what came; a request that has begun must end its headers in time."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_headers()
        else:
            self._stop_headers_timer()

    def on_response_complete(self) -> None:
        """The answer is out; of a next request a part may be here already."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._await_headers()

    def pause_writing(self) -> None:
        """The buffers are full: the client must read on."""
        super().pause_writing()
        loop = asyncio.get_running_loop()
        self._unread_timer = loop.call_later(self.unread_timeout_s, self._cut)

    def resume_writing(self) -> None:
        """Resume after the client reads."""
        self._stop_unread_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Connection closed by either side."""
        self._stop_headers_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        if self._headers_timer is None:
            loop = asyncio.get_running_loop()
            self._headers_timer = loop.call_later(self.headers_timeout_s, self._cut)

    def _cut(self) -> None:
        self._headers_timer = self._unread_timer = None
        if not self.transport.is_closing():
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

    def _stop_headers_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
