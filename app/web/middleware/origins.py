"""Cross-origin policy: CORS for the public JSON routes, and same-origin checks for forms.

On a public service, pages of other origins may read answers and diagnose, never with credentials. Judgements,
votes, webhooks and pages are same-origin only. A form is accepted only from our own pages: browsers send its
origin in `Sec-Fetch-Site` or `Origin`; other programs send neither and are accepted.
"""

from fastapi import Request
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import TriageError

_READ = ("GET", "HEAD")
_FILES = frozenset({"/openapi.json", "/llms.txt", "/feed.atom"})
_DIAGNOSE = "/api/v1/diagnose"
_CLOSED = "/api/v1/judgements"
_PREFLIGHT_AGE_S = 86_400

OWN_REFERRER = {"Referrer-Policy": "same-origin"}
"""Header of pages with a form: under a no-referrer policy, browsers would send `Origin: null`."""


class ForeignFormError(TriageError):
    """A form was sent by another site's page."""

    status = 403


class CrossOrigin:
    """ASGI middleware: CORS on the routes open to other origins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._reads, self._diagnose = _cors(app, _READ), _cors(app, ("POST",))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app, with CORS headers only on the open routes."""
        path, method = scope.get("path", ""), scope.get("method")
        is_read = path in _FILES or (path.startswith("/api/v1/") and not path.startswith(_CLOSED))
        app = self._app
        if path == _DIAGNOSE and method in {"POST", "OPTIONS"}:
            app = self._diagnose
        elif path != _DIAGNOSE and is_read and method in {*_READ, "OPTIONS"}:
            app = self._reads
        await app(scope, receive, send)


def _cors(app: ASGIApp, methods: tuple[str, ...]) -> ASGIApp:
    return CORSMiddleware(
        app,
        allow_origins=["*"],
        allow_methods=methods,
        allow_headers=["Content-Type", "X-API-Key", "Authorization", "If-None-Match"],
        expose_headers=["ETag", "Link", "Retry-After", "RateLimit", "RateLimit-Policy", "X-Request-ID"],
        max_age=_PREFLIGHT_AGE_S,
    )


async def require_same_origin(request: Request) -> None:
    """Dependency that rejects forms from other origins.

    Raises:
        ForeignFormError: the form comes from another or an opaque origin.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_own = site in {"same-origin", "none"}
    else:
        own = request.headers.get("host", "").lower()
        is_own = origin is None or origin.partition("://")[2].lower() == own
    if not is_own:
        raise ForeignFormError(
            "This form was sent by another site's page. Open its page here and send it from there."
        )
