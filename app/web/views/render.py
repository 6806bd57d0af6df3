"""Render pages from autoescaping templates, and build the URLs they link to."""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.types import Receive, Scope, Send

from app.knowledge import labels
from app.knowledge.diagnosis.excerpts import marked_pieces
from app.knowledge.diagnosis.headline import issue_name
from app.paths import static_dir
from app.render import make_environment
from app.web.views import filters as words
from app.web.views.filters import shade

_PLAIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]{1,260}/[A-Za-z0-9._~/-]{0,200}")
_FROM_ROOT = re.compile(rb' (href|src|action)="/(?!/)')
LOCAL = "http://localhost:8000/"
_ASSETS = ("style.css", "app.js", "docs.css", "docs.js", "icon.svg")


_FILTERS: tuple[Callable[..., Any], ...] = (
    *(labels.count, labels.heading, labels.label, labels.plural, marked_pieces),
    *(words.age, words.day, words.rfc3339, words.stamp),
    *(words.range_words, words.version),
    shade,
    *(words.listed, words.percent, words.share, words.unmarked),
)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return make_environment(
        filters={function.__name__: function for function in (*_FILTERS, link_issue)},
        names=vars(labels)
        | {
            "page_address": page_address,
            "issue_name": issue_name,
            "assets": _asset_addresses(),
            "outcome_icons": words.OUTCOME_ICONS,
        },
    )


def _asset_addresses() -> dict[str, str]:
    """Return each asset's URL with a hash of its content, so that browsers fetch changed files at once."""
    addresses = {}
    for name in _ASSETS:
        digest = hashlib.sha256((static_dir() / name).read_bytes()).hexdigest()[:10]
        addresses[name] = f"/static/{name}?{digest}"
    return addresses


class RootedPage(HTMLResponse):
    """An HTML page; if the service has a path prefix, it is added to root-relative URLs."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if prefix := scope.get("app_root_path"):
            self.body = _FROM_ROOT.sub(rb' \1="%b/' % prefix.encode(), bytes(self.body))
            self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def render_page(
    template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: Any
) -> RootedPage:
    """Render a template of `templates/` as a response, which can be sent once."""
    return RootedPage(render_text(template, **context), status, headers=headers)


def render_text(template: str, **context: Any) -> str:
    return _environment().get_template(template).render(**context)


def load_pages() -> None:
    """Compile the templates of all pages, so that no visitor waits for it."""
    for name in _environment().list_templates(extensions=["html"]):
        _environment().get_template(name)


def link_issue(sentence: str, number: int, address: str) -> Markup:
    """Return the escaped sentence with its first `#number` or `owner/name#number` linked to `address`."""
    found = re.search(rf"(?:[\w-]{{1,50}}/[\w.-]{{1,100}})?#{number}(?!\d)", sentence)
    if found is None:
        return escape(sentence)
    link = Markup('<a href="{}">{}</a>').format(address, found[0])
    return escape(sentence[: found.start()]) + link + escape(sentence[found.end() :])


def page_address(repo: str, number: int, default_repo: str) -> str:
    """Return the path of an issue's page, the short form for the default repository."""
    return f"/issues/{number}" if repo == default_repo else f"/r/{repo}/issues/{number}"


def api_address(repo: str, number: int, default_repo: str) -> str:
    """Return the path of an issue's JSON, the short form for the default repository."""
    return f"/api/v1/issues/{number}" if repo == default_repo else f"/api/v1/repos/{repo}/issues/{number}"


def base_address(request: Request) -> str:
    """Return the server's base URL with a trailing slash; `LOCAL` if the Host header is suspicious."""
    base = str(request.base_url)
    return base if _PLAIN.fullmatch(base) else LOCAL


def with_repo(path: str, repo: str, default_repo: str, /, **query: str | None) -> str:
    """Return a page's URL with the repository (unless it is the default one) and non-empty parameters."""
    carried = {name: value for name, value in query.items() if value}
    if repo != default_repo:
        carried["repo"] = repo
    mine = f"stack={quote_plus(carried.pop('stack'), safe='/~:')}" if "stack" in carried else ""
    parts = "&".join(filter(None, (mine, urlencode(carried))))
    return f"{path}?{parts}" if parts else path
