"""Which answers a page of another origin may read: public reads and the diagnosis, never with credentials.

Judgements, votes, deliveries and pages are left to their own origin: a browser refuses the rest.

A form counts only if one of our own pages sent it: another site's page could send it for its visitor.

A browser says which origin a form comes from, in `Sec-Fetch-Site` (over https and on this machine) or in
`Origin`; a program that is no browser says neither, and acts for itself alone.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import TriageError
from app.web.middleware.headers import at_start

_READ = "GET, HEAD"
_FILES = frozenset({"/openapi.json", "/llms.txt", "/feed.atom"})
_DIAGNOSE = "/api/v1/diagnose"
_CLOSED = "/api/v1/judgements"
_EXPOSED = "ETag, Retry-After, RateLimit, RateLimit-Policy"
_ASKED = "Content-Type, X-API-Key, Authorization, If-None-Match"
_PREFLIGHT_AGE_S = 86_400


class CrossOrigin:
    """ASGI middleware: adds the CORS headers of an open route, and answers its preflights."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; the answer says the same to every origin, so caches need not tell them apart."""
        allowed = _methods(scope["path"]) if scope["type"] == "http" else ""
        if not allowed:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and _is_preflight(scope):
            await send({"type": "http.response.start", "status": 204, "headers": _preflight(allowed)})
            await send({"type": "http.response.body", "body": b""})
            return
        is_open = scope["method"] in allowed.split(", ")
        await self._app(scope, receive, at_start(send, _open) if is_open else send)


def _open(headers: MutableHeaders) -> None:
    headers["Access-Control-Allow-Origin"] = "*"
    headers["Access-Control-Expose-Headers"] = _EXPOSED


def _methods(path: str) -> str:
    """The methods that other origins may use on an address; empty where there are none."""
    if path == _DIAGNOSE:
        return "POST"
    if path in _FILES or (path.startswith("/api/v1/") and not path.startswith(_CLOSED)):
        return _READ
    return ""


def _is_preflight(scope: Scope) -> bool:
    return any(name == b"access-control-request-method" for name, _ in scope["headers"])


def _preflight(allowed: str) -> list[tuple[bytes, bytes]]:
    told = {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": allowed,
        "access-control-allow-headers": _ASKED,
        "access-control-max-age": str(_PREFLIGHT_AGE_S),
    }
    return [(name.encode(), value.encode()) for name, value in told.items()]


OWN_REFERRER = {"Referrer-Policy": "same-origin"}
"""For pages with such a form: where no referrer may be told, a browser sends `Origin: null`."""


class ForeignFormError(TriageError):
    """A form came from another site's page."""

    status = 403


async def require_same_origin(request: Request) -> None:
    """Refuse a form of another origin; a dependency of the route that takes it.

    Raises:
        ForeignFormError: it comes from another origin, or from one that is hidden.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_own = site in {"same-origin", "none"}
    else:
        is_own = origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
    if not is_own:
        raise ForeignFormError(
            "This form was sent by another site's page. Open the issue here and vote there."
        )
