"""Whose request it is: the address of a client, seen through the proxies that the operator trusts.

In: the peer of a connection and its `X-Forwarded-For`. Out: the client's address.
A proxy appends the address it was called from, so the list is read from its right end and the first address
that is no trusted proxy is the client's. What stands further left was written by the client itself.
Forwarding headers of peers that are not trusted are not believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_HOPS_MAX = 20
_CLIENT_PREFIX_BITS = 64
"""An IPv6 customer holds at least a /64, so single addresses tell nothing."""
_LOCAL = "local"


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
        trusted: networks of proxies that are believed.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[Network]) -> None:
        self._app = app
        self._trusted = tuple(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on with the client's own address and scheme."""
        if scope["type"] == "http" and self._trusted:
            peer = _address((scope.get("client") or ("",))[0])
            if peer is not None and _is_in(peer, self._trusted):
                scope.update(_forwarded(scope, peer, self._trusted))
        await self._app(scope, receive, send)


def visitor_of(scope: Scope) -> Visitor:
    """The client of a request, as `ForwardedClient` left it.

    A peer on this machine that forwards others' requests without being trusted is one client like any other:
    all behind it share its key. A peer without an address (a Unix socket) is on this machine.
    """
    address = _address((scope.get("client") or ("",))[0])
    is_here = address is None or address.is_loopback
    is_local = is_here and ("triage.forwarded" in scope or not _is_forwarding(scope))
    return Visitor(_key(address), is_local)


async def visitor(request: Request) -> Visitor:
    """The client of a request; an endpoint takes it as a dependency."""
    return visitor_of(request.scope)


def parse_networks(text: str) -> tuple[Network, ...]:
    """The networks in a comma-separated list such as `10.0.0.0/8, ::1`; ValueError if one is none."""
    return tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())


def _forwarded(scope: Scope, peer: Address, trusted: Sequence[Network]) -> dict[str, object]:
    hops = [hop.strip() for value in _values(scope, b"x-forwarded-for") for hop in value.split(",")]
    client = peer
    for hop in reversed(hops[-_HOPS_MAX:]):
        told = _address(_without_port(hop))
        if told is None:
            break  # an address that is none ends what can be believed
        client = told
        if not _is_in(told, trusted):
            break
    found: dict[str, object] = {"client": (str(client), 0), "triage.forwarded": True}
    scheme = next(iter(_values(scope, b"x-forwarded-proto")), "").strip().lower()
    if scheme in {"http", "https"}:
        found["scheme"] = scheme
    return found


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _is_forwarding(scope: Scope) -> bool:
    return any(name in {b"x-forwarded-for", b"forwarded", b"x-real-ip"} for name, _ in scope["headers"])


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _address(text: str) -> Address | None:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _key(address: Address | None) -> str:
    if address is None:
        return _LOCAL
    if isinstance(address, IPv6Address) and not address.is_loopback:
        return str(ip_network((address, _CLIENT_PREFIX_BITS), strict=False))
    return str(address)
