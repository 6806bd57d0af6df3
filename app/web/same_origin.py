"""A form counts only if one of our own pages sent it: another site's page could send it for its visitor.

A browser says which origin a form comes from, in `Sec-Fetch-Site` (over https and on this machine) or in
`Origin`; a program that is no browser says neither, and acts for itself alone.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

from app.errors import TriageError

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
