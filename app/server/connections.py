"""Connection limits: protection against slow senders, slow readers, and too many connections.

uvicorn waits indefinitely for the rest of a request's headers, for the rest of a body that is already
answered, and for a client to read a response. Each such connection costs memory and a file descriptor, so
each wait has a timeout here, and each client a maximum number of connections; the limits on bodies are in
`app.web.middleware.fair_shares`.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
import time
from collections import Counter
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, cast

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.web.headers import at_start
from app.web.middleware.client import client_of

HEADERS_TIMEOUT_S = 15.0
"""From opening a connection, or from the end of a response, to the end of the next request's headers."""
UNREAD_TIMEOUT_S = 30.0
"""How long a client may not read a response that fills the buffers, or the last one on a connection."""
LINGER_S = 2.0
"""How long the rest of a body is read and dropped after the response, so that the client sees that."""

CONNECTIONS_MAX = 1000
"""Per worker; beyond it, the client with the most connections loses its oldest one that waits for it."""
SHARE = 250
"""Per client; beyond it, the client's oldest connection is closed. Trusted proxies have no such limit."""
BACKLOG = 100
"""Listen backlog; the event loop may accept this many connections at once before any is counted."""
OTHER_FILES = 128
"""File descriptors of a worker for other purposes: the database, static files."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER with timeout 0: closing drops unsent data."""
_LOG = structlog.get_logger(__name__)


def raise_file_limit() -> int:
    """Raise the limit on open files to its maximum; return how many client connections that allows."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files = CONNECTIONS_MAX * 10 if hard == resource.RLIM_INFINITY else hard
    connections = max(1, min(CONNECTIONS_MAX, files - BACKLOG - OTHER_FILES))
    _LOG.info("limits", open_files=hard, connections=connections, connections_of_one_client=SHARE)
    return connections


@cache
def _networks(*hosts: str) -> Any:
    proxies = ProxyHeadersMiddleware(cast("Any", None), list(hosts))
    return proxies.trusted_hosts


class _GracefulTransport:
    """A transport that closes gracefully: it drains the rest of a request first, within a timeout."""

    def __init__(self, transport: asyncio.Transport, protocol: TimedProtocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._closing: asyncio.TimerHandle | None = None
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """True if the transport is closing or closed."""
        return self._closing is not None or self._transport.is_closing()

    def close(self) -> None:
        """Close once the client has read the response, or after a timeout."""
        if self.is_closing():
            return
        is_sending = self._protocol.cycle is not None and self._protocol.cycle.more_body
        wait_s = self._protocol.linger_s if is_sending else self._protocol.unread_timeout_s
        self._closing = asyncio.get_running_loop().call_later(wait_s, self.cut)
        if is_sending and self._transport.can_write_eof():
            self._transport.write_eof()
            self._transport.resume_reading()
        else:
            self._transport.close()

    def cut(self) -> None:
        """Close now, dropping unsent data."""
        self.is_cut = True
        connection = self._transport.get_extra_info("socket")
        if connection is not None and connection.fileno() >= 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()

    def end(self) -> None:
        """Cancel the timer, as the connection is closed."""
        if self._closing is not None:
            self._closing.cancel()


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with these limits; connections that exceed one are cut.

    Based on h11, as uvicorn's other parser, httptools, loses the body of a request that offers HTTP/2
    (`Upgrade: h2c`), as Java's client does. `config.forwarded_allow_ips` names the trusted proxies.
    """

    headers_timeout_s = HEADERS_TIMEOUT_S
    unread_timeout_s = UNREAD_TIMEOUT_S
    linger_s = LINGER_S
    connections_max = CONNECTIONS_MAX
    share = SHARE

    _headers_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    graceful: _GracefulTransport
    opened_at: float

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer for the first headers, and cut a connection if there are too many."""
        self.graceful = _GracefulTransport(cast("asyncio.Transport", transport), self)
        self.opened_at = time.monotonic()
        self.app = self._answer
        super().connection_made(cast("asyncio.Transport", self.graceful))
        self._await_headers()
        self._make_room()

    @cached_property
    def client_key(self) -> str | None:
        """The client whose share the connection counts towards; None for a trusted proxy."""
        if self.client is None:
            return None
        is_trusted = self.client[0] in _networks(*self.config.forwarded_allow_ips)
        return None if is_trusted else client_of({"client": self.client})

    @property
    def waits_for_client(self) -> bool:
        """True if the client must first send a request, send the rest of a body, or read a response."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def _make_room(self) -> None:
        """Cut one connection if this client, or all clients together, have too many."""
        here = cast("set[TimedProtocol]", self.connections)
        held = Counter([one.client_key for one in here if not one.graceful.is_cut])
        is_full = held.total() > self.connections_max
        del held[None]
        most = self.client_key
        if held[most] <= self.share:
            if not is_full:
                return
            most = max(held, key=held.__getitem__, default=None)
        crowd = [one for one in here if one.client_key == most and not one.graceful.is_cut]
        waiting = [one for one in crowd if one.waits_for_client] or [self]
        min(waiting, key=attrgetter("opened_at")).graceful.cut()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app; close the connection after a response sent before the whole body was received."""

        def close_if_incomplete(headers: MutableHeaders) -> None:
            if self.cycle.more_body:
                headers["Connection"] = "close"

        await self.config.loaded_app(scope, receive, at_start(send, close_if_incomplete))

    def data_received(self, data: bytes) -> None:
        """Process data unless the connection is closing, and update the headers timer."""
        if not self.graceful.is_closing():
            super().data_received(data)
            self._follow()

    def on_response_complete(self) -> None:
        """Update the headers timer; the next request may have arrived already."""
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """Start the timer for unread data, as the buffers are full."""
        super().pause_writing()
        loop = asyncio.get_running_loop()
        self._unread_timer = loop.call_later(self.unread_timeout_s, self.graceful.cut)

    def resume_writing(self) -> None:
        """Resume after the client reads."""
        self._stop_unread_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Connection closed by either side."""
        self.graceful.end()
        self._stop_headers_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)

    def _follow(self) -> None:
        """Run the headers timer whenever no request is in progress."""
        if self.cycle is None or self.cycle.response_complete:
            self._await_headers()
        else:
            self._stop_headers_timer()

    def _await_headers(self) -> None:
        if self._headers_timer is None:
            loop = asyncio.get_running_loop()
            self._headers_timer = loop.call_later(self.headers_timeout_s, self.graceful.cut)

    def _stop_headers_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
