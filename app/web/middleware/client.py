"""What a proxy in front of the service changes: whose address a request comes from, and under which path.

uvicorn's middleware reads `X-Forwarded-For` from its right end: the first address that is no trusted proxy is
the client's. What stands further left was written by the client itself, and forwarding headers of peers that
are not trusted are ignored.

Under a prefix of a host, such as `https://tools.example.org/triage/`, every path and address inside begins
at the service's own root. A request's path loses the prefix, if the proxy has left it there; `Location`,
`Link` and the paths of cookies get it, and so do the addresses in pages (`app.web.views.render`), which find
it in the scope as `Request.base_url` does.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from starlette.datastructures import URL, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.web.headers import at_start

_CLIENT_PREFIX_BITS = 64
"""An IPv6 customer holds at least a /64, so single addresses do not tell clients apart."""
_LOCAL = "local"
_PROXY = "triage.proxy"
"""In the scope: the trusted proxy that the connection came from."""


class ForwardedClient:
    """ASGI middleware: what a trusted proxy says of the client takes the place of the proxy itself."""

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


def client_of(scope: Scope) -> str:
    """The client as `ForwardedClient` left it: its IPv4 address, or the /64 of its IPv6 address.

    A peer that forwards others' requests without being trusted, or without naming them, is one client, on
    this machine too. So are all peers without an address (a Unix socket).
    """
    return _key(_address_of(scope) or _address(scope.get(_PROXY, "")))


async def client(request: Request) -> str:
    """The client of a request; an endpoint takes it as a dependency."""
    return client_of(request.scope)


ClientDep = Annotated[str, Depends(client)]


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


_COOKIE_PATH = re.compile(r"(?i)(; *path=)/")


class UnderPrefix:
    """ASGI middleware; stands outside of all that looks at paths.

    Args:
        prefix: where the service stands, such as `/triage`.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on as one at the root; the answer's headers lead back below the prefix."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == self._prefix or path.startswith(f"{self._prefix}/"):
            path = path.removeprefix(self._prefix) or "/"
        scope = {**scope, "path": path, "app_root_path": self._prefix}
        origin = str(URL(scope=scope).replace(path="", query="", fragment=""))

        def move(headers: MutableHeaders) -> None:
            if (location := headers.get("location", "").removeprefix(origin)).startswith("/"):
                headers["location"] = self._moved(location)
            if (link := headers.get("link", "")).startswith("</"):
                headers["link"] = f"<{self._moved(link[1:])}"
            cookies = headers.getlist("set-cookie")
            del headers["set-cookie"]
            for cookie in cookies:
                headers.append("set-cookie", _COOKIE_PATH.sub(rf"\1{self._prefix}/", cookie, count=1))

        await self._app(scope, receive, at_start(send, move))

    def _moved(self, address: str) -> str:
        return address if address.startswith(f"{self._prefix}/") else self._prefix + address
