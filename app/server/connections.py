"""Connections that come to nothing: who sends slowly or not at all, reads slowly, or opens too many.

uvicorn waits without end for the rest of a request's headers, for what is left of a body that is answered
already, and for a client to take an answer. Each such connection costs memory and a file descriptor, so all
have a limit of time here, and each client one of number; bodies have theirs in
`app.web.middleware.body_limits`.
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
"""From the opening of a connection, or the end of an answer, to the end of the next request's headers."""
UNREAD_TIMEOUT_S = 30.0
"""How long a client may leave an answer unread that fills the buffers, or the last one on a connection."""
LINGER_S = 2.0
"""How long the rest of a body is let in and dropped after its answer, so that the client sees the answer."""

CONNECTIONS_MAX = 1000
"""Of one worker at a time. For one more the oldest is closed that waits for its client, of who holds most."""
SHARE = 250
"""Of one client, whose own oldest goes for one more; a trusted proxy, which speaks for many, has no share."""
BACKLOG = 100
"""As many connections are accepted at once, before the first of them is counted and anything else is done."""
OTHER_FILES = 128
"""Descriptors of a worker that are no clients' connections: of the database, of static files."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""To linger no second: what the kernel holds for the client is dropped with the connection."""
_LOG = structlog.get_logger(__name__)


def raise_file_limit() -> int:
    """Let this process open as many files as it may; how many connections of clients that leaves room for."""
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


class _Gentle:
    """A transport whose closing has an end, and which lets the rest of a request in before."""

    def __init__(self, transport: asyncio.Transport, protocol: TimedProtocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._closing: asyncio.TimerHandle | None = None
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether nothing is read or written any more."""
        return self._closing is not None or self._transport.is_closing()

    def close(self) -> None:
        """Close once the client has taken the answer, or has had time for it."""
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
        """Close now; what was not sent is dropped."""
        self.is_cut = True
        connection = self._transport.get_extra_info("socket")
        if connection is not None and connection.fileno() >= 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()

    def end(self) -> None:
        """The connection is closed."""
        if self._closing is not None:
            self._closing.cancel()


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with these limits; a connection past one of them is cut.

    Over h11: its other parser, httptools, loses the body of a request that offers HTTP/2 (`Upgrade: h2c`), as
    Java's client does. `config.forwarded_allow_ips` names the trusted proxies.
    """

    headers_timeout_s = HEADERS_TIMEOUT_S
    unread_timeout_s = UNREAD_TIMEOUT_S
    linger_s = LINGER_S
    connections_max = CONNECTIONS_MAX
    share = SHARE

    _headers_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    gentle: _Gentle
    opened_at: float

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open, make room if this is one too many, and wait for the first headers."""
        self.gentle = _Gentle(cast("asyncio.Transport", transport), self)
        self.opened_at = time.monotonic()
        self.app = self._answer
        super().connection_made(cast("asyncio.Transport", self.gentle))
        self._await_headers()
        self._make_room()

    @cached_property
    def client_key(self) -> str | None:
        """Whose share the connection counts for."""
        if self.client is None:
            return None
        is_trusted = self.client[0] in _networks(*self.config.forwarded_allow_ips)
        return None if is_trusted else client_of({"client": self.client})

    @property
    def waits_for_client(self) -> bool:
        """Whether the client has yet to ask, to send the rest of a body or to take its answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def _make_room(self) -> None:
        """Cut one connection if there are too many, of this client or in all."""
        here = cast("set[TimedProtocol]", self.connections)
        held = Counter([one.client_key for one in here if not one.gentle.is_cut])
        is_full = held.total() > self.connections_max
        del held[None]
        most = self.client_key
        if held[most] <= self.share:
            if not is_full:
                return
            most = max(held, key=held.__getitem__, default=None)
        crowd = [one for one in here if one.client_key == most and not one.gentle.is_cut]
        waiting = [one for one in crowd if one.waits_for_client] or [self]
        min(waiting, key=attrgetter("opened_at")).gentle.cut()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; after an answer that comes before the whole body the connection ends."""

        def close_if_incomplete(headers: MutableHeaders) -> None:
            if self.cycle.more_body:
                headers["Connection"] = "close"

        await self.config.loaded_app(scope, receive, at_start(send, close_if_incomplete))

    def data_received(self, data: bytes) -> None:
        """Take what came, unless its answer is out; a request that has begun must end its headers in time."""
        if not self.gentle.is_closing():
            super().data_received(data)
            self._follow()

    def on_response_complete(self) -> None:
        """The answer is out; the next request may be here already."""
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """The buffers are full: the client must read on."""
        super().pause_writing()
        loop = asyncio.get_running_loop()
        self._unread_timer = loop.call_later(self.unread_timeout_s, self.gentle.cut)

    def resume_writing(self) -> None:
        """Resume after the client reads."""
        self._stop_unread_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Connection closed by either side."""
        self.gentle.end()
        self._stop_headers_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)

    def _follow(self) -> None:
        """The time for headers runs whenever no request is being answered."""
        if self.cycle is None or self.cycle.response_complete:
            self._await_headers()
        else:
            self._stop_headers_timer()

    def _await_headers(self) -> None:
        if self._headers_timer is None:
            loop = asyncio.get_running_loop()
            self._headers_timer = loop.call_later(self.headers_timeout_s, self.gentle.cut)

    def _stop_headers_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
