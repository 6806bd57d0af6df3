"""Serving under a prefix of a host, such as `https://tools.example.org/triage/`.

Inside, every path and address begins at the service's own root. A request's path loses the prefix, if the
proxy has left it there; `Location`, `Link` and the paths of cookies get it, and so do the addresses in pages
(`app.web.views.render`), which find it in the scope as `Request.base_url` does.
"""

from __future__ import annotations

import re

from starlette.datastructures import URL, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from app.web.headers import at_start

_COOKIE_PATH = re.compile(r"(?i)(; *path=)/")


class UnderPrefix:
    """ASGI middleware; stands outside of all that looks at paths.

    Args:
        app: what follows.
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
