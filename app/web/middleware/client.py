"""The client of a request: its address, seen through the proxies that the operator trusts.

uvicorn's middleware reads `X-Forwarded-For` from its right end: the first address that is no trusted proxy is
the client's. What stands further left was written by the client itself, and forwarding headers of peers that
are not trusted are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

_CLIENT_PREFIX_BITS = 64
"""An IPv6 customer holds at least a /64, so single addresses do not tell clients apart."""
_LOCAL = "local"
_PROXY = "triage.proxy"
"""In the scope: the trusted proxy that the connection came from."""
_FORWARDING = {b"x-forwarded-for", b"forwarded", b"x-real-ip"}


@dataclass(frozen=True, slots=True)
class Visitor:
    """One client.

    `key` is the same for all requests of a client: its IPv4 address, or the /64 of its IPv6 address.
    `is_local`: it runs on this machine, and nothing says that it only passes on what others ask.
    """

    key: str
    is_local: bool


class ForwardedClient:
    """ASGI middleware: what a trusted proxy says of the client takes the place of the proxy itself.

    Args:
        app: what follows.
        trusted: addresses and networks of proxies that are believed.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self._proxies = ProxyHeadersMiddleware(cast("Any", app), list(trusted))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on with the client's own address and scheme."""
        peer = _address_of(scope)
        if peer is not None:
            scope["client"] = (str(peer), scope["client"][1])
            if str(peer) in self._proxies.trusted_hosts:
                scope[_PROXY] = str(peer)
        await self._proxies(cast("Any", scope), cast("Any", receive), cast("Any", send))


def visitor_of(scope: Scope) -> Visitor:
    """The client of a request, as `ForwardedClient` left it; the proxy where it names no address.

    A peer on this machine that forwards others' requests without being trusted is one client like any other:
    all behind it share its key. A peer without an address (a Unix socket) is on this machine.
    """
    address = _address_of(scope) or _address(scope.get(_PROXY, ""))
    is_here = address is None or address.is_loopback
    is_forwarding = any(name in _FORWARDING for name, _ in scope["headers"])
    return Visitor(_key(address), is_here and (_PROXY in scope or not is_forwarding))


async def visitor(request: Request) -> Visitor:
    """The client of a request; an endpoint takes it as a dependency."""
    return visitor_of(request.scope)


VisitorDep = Annotated[Visitor, Depends(visitor)]


def _address_of(scope: Scope) -> IPv4Address | IPv6Address | None:
    return _address((scope.get("client") or ("",))[0])


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _key(address: IPv4Address | IPv6Address | None) -> str:
    if address is None:
        return _LOCAL
    if isinstance(address, IPv6Address) and not address.is_loopback:
        return str(ip_network((address, _CLIENT_PREFIX_BITS), strict=False))
    return str(address)
