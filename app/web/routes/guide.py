"""`/guide`: the pages of `app/guide/`, rendered once from their Markdown.

They are written for a reader in the checkout too, so they link to each other as `chatbots.md`; here that is
`/guide/chatbots`. A link to a file that the server does not serve becomes plain text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from app.errors import NotFoundError
from app.paths import guide_dir
from app.web.views.render import render_page

router = APIRouter(include_in_schema=False)

_PAGE_LINK = re.compile(r"([a-z-]+)\.md(#.*)?")


@dataclass(frozen=True, slots=True)
class GuidePage:
    """A page of the guide as HTML."""

    name: str
    title: str
    html: Markup


@lru_cache(maxsize=1)
def guide_pages() -> dict[str, GuidePage]:
    """All pages by name, in the order of the contents list `index.md`."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in guide_dir().glob("*.md")}
    order = ["index", *re.findall(r"\]\(([a-z-]+)\.md\)", texts["index"])]
    return {name: _render(name, texts[name]) for name in order}


def _render(name: str, text: str) -> GuidePage:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL))
    title = next((tokens[at + 1].content for at, token in enumerate(tokens) if token.tag == "h1"), name)
    for at, token in enumerate(tokens):
        if token.type == "heading_open":  # links name a heading as GitHub does
            token.attrSet("id", re.sub(r"[^a-z0-9]+", "-", tokens[at + 1].content.lower()).strip("-"))
        if token.children:
            token.children = _with_served_links(token.children)
        if token.type == "table_open":
            token.attrSet("tabindex", "0")  # a wide table scrolls, also by keyboard
    html = markdown.renderer.render(tokens, markdown.options, {}).replace("<th></th>", "<td></td>")
    return GuidePage(name, title, Markup(html))  # noqa: S704 - the guide is ours


def _with_served_links(tokens: list[Token]) -> list[Token]:
    kept: list[Token] = []
    is_dropped = False
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrGet("href"))
            page = _PAGE_LINK.fullmatch(target)
            is_dropped = page is None and not target.startswith(("/", "#", "http://", "https://"))
            if page is not None:
                token.attrSet("href", f"/guide/{page[1]}{page[2] or ''}")
        if is_dropped and token.type in {"link_open", "link_close"}:
            continue
        kept.append(token)
    return kept


@router.get("/guide")
def guide() -> HTMLResponse:
    """The contents."""
    return _show("index")


@router.get("/guide/{name}", response_model=None)
def guide_page(name: str) -> HTMLResponse | RedirectResponse:
    """One page.

    Raises:
        NotFoundError: the guide has no such page.
    """
    if name == "index" or name.endswith(".md"):
        return RedirectResponse("/guide" if name.startswith("index") else f"/guide/{name[:-3]}", 301)
    return _show(name)


def _show(name: str) -> HTMLResponse:
    pages = guide_pages()
    if name not in pages:
        raise NotFoundError(f"The guide has no page {name!r}; its contents are at /guide.")
    return render_page("guide.html", page=pages[name], pages=pages.values())
