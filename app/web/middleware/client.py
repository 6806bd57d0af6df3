"""Reverse proxies: the client's address from forwarding headers, and the service's path prefix.

uvicorn's middleware reads `X-Forwarded-For` from the right: the first address that is not a trusted proxy is
the client's. Entries further left are under the client's control and ignored, as are forwarding headers of
untrusted peers.

Under a path prefix, such as `https://tools.example.org/triage/`, all internal paths are relative to the
service's root. The prefix is removed from request paths, if the proxy has not done so, and added to
`Location`, `Link`, cookie paths and the links in pages (`app.web.views.render`), which find it in the scope,
as `Request.base_url` does.
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
"""IPv6 clients are identified by their /64, the least that a customer gets."""
_LOCAL = "local"
_PROXY = "triage.proxy"
"""Scope key: the trusted proxy that opened the connection."""


class ForwardedClient:
    """ASGI middleware: replace a trusted proxy's address and scheme by the client's."""

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self._proxies = ProxyHeadersMiddleware(cast("Any", app), list(trusted))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app with the client's own address and scheme."""
        peer = _address_of(scope)
        if peer is not None:
            scope["client"] = (str(peer), scope["client"][1])
            if str(peer) in self._proxies.trusted_hosts:
                scope[_PROXY] = str(peer)
        await self._proxies(cast("Any", scope), cast("Any", receive), cast("Any", send))


def client_of(scope: Scope) -> str:
    """Return the client's key: its IPv4 address, or the /64 of its IPv6 address; see `ForwardedClient`.

    A proxy that is not trusted or does not name its clients counts as one client, on this machine too. All
    peers without an address (Unix sockets) are one client.
    """
    return _key(_address_of(scope) or _address(scope.get(_PROXY, "")))


async def client(request: Request) -> str:
    """Dependency: the client key of a request."""
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
    """ASGI middleware for a path prefix; must be outside all middleware that reads paths.

    Args:
        prefix: the service's path prefix, such as `/triage`.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app without the prefix in the path, and add it to paths in the response's headers."""
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
