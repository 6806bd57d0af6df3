"""An issue's own words as safe HTML: with numbered evidence marks, or as Markdown where there are none.

Marks: the text is escaped and shown as it stands, so that an offset of the raw text is a place on the
page. Markdown: rendered without raw HTML, then cleaned by nh3; images become links, as no page of ours
loads anything from elsewhere.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

TEXT_LIMIT = 200_000
"""Most characters of a text on a page; GitHub's own limit is 65,536."""

MARKDOWN_LIMIT = 20_000
"""Longest text rendered as Markdown; a longer one is shown as it stands, which costs nothing."""

SHOWN_BYTES = 40_000
"""Most of a text on an issue's page, escaped, in bytes: a page weighs 100 KiB at most with all it loads."""

LINK_REL = "nofollow ugc noopener"

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Evidence `number` stands between two code points of the text."""

    start: int
    end: int
    number: int


def shown_part(text: str) -> str:
    """As much of a text, from its beginning, as an issue's page has room for, in whole lines."""
    part = text[:SHOWN_BYTES]
    while (size := len(escape(part).encode("utf-8", "replace"))) > SHOWN_BYTES:
        part = part[: len(part) * SHOWN_BYTES // size - 1]
    return part if len(part) == len(text) else part[: part.rfind("\n") + 1] or part


def mark_text(text: str, spans: Iterable[Span]) -> Markup:
    """The text, escaped, with `<mark id="eN" data-n="N">` round each span.

    Spans may nest. One that only overlaps an earlier one begins where that one ends; one outside the
    text or without extent gets an empty mark at its place, so that no link to it is dead.
    """
    text = text[:TEXT_LIMIT]
    out: list[Markup] = []
    open_ends: list[int] = []
    at = 0

    def copy_to(place: int) -> None:
        nonlocal at
        while open_ends and open_ends[-1] <= place:
            out.append(escape(text[at : open_ends[-1]]) + Markup("</mark>"))
            at = open_ends.pop()
        out.append(escape(text[at:place]))
        at = place

    # the longer first where two begin at one place, so that the shorter nests
    queue = [
        (min(max(span.start, 0), len(text)), -min(max(span.end, 0), len(text)), span.number) for span in spans
    ]
    heapq.heapify(queue)
    while queue:
        start, end, number = heapq.heappop(queue)
        end = max(-end, start)
        # those that end before this one begins are closed on the way; does one end inside this one?
        inner = next((close for close in reversed(open_ends) if close > start), None)
        if inner is not None and inner < end:
            heapq.heappush(queue, (inner, -end, number))
            continue
        copy_to(start)
        out.append(Markup('<mark id="e{0}" data-n="{0}">').format(number))
        open_ends.append(end)
    copy_to(len(text))
    while open_ends:
        open_ends.pop()
        out.append(Markup("</mark>"))
    return Markup("").join(out)


def render_markdown(text: str) -> Markup:
    """The text as Markdown in safe HTML; a long one as it stands."""
    if len(text) > MARKDOWN_LIMIT:
        return Markup('<pre class="orig">{}</pre>').format(text[:TEXT_LIMIT])
    html = nh3.clean(
        _markdown().render(text),
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}, "*": set()},
        attribute_filter=_absolute_only,
        url_schemes={"http", "https"},
        link_rel=LINK_REL,
    )
    return Markup(html)  # noqa: S704 - nh3 let nothing through but the tags above


def _absolute_only(_tag: str, name: str, value: str) -> str | None:
    """Where a text was written, a relative address meant another place than it would mean on our page."""
    return value if name != "href" or value.startswith(("http://", "https://")) else None


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    """CommonMark with tables, without raw HTML; headings begin below those of the page."""
    markdown = MarkdownIt("commonmark", {"html": False, "maxNesting": 12}).enable(["table", "strikethrough"])
    markdown.add_render_rule("image", _image_as_link)
    markdown.add_render_rule("heading_open", _lower_heading)
    markdown.add_render_rule("heading_close", _lower_heading)
    return markdown


def _image_as_link(
    _renderer: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    token = tokens[index]
    return str(
        Markup('<a href="{}">Image: {}</a>').format(
            str(token.attrGet("src") or ""), token.content or "without a name"
        )
    )


def _lower_heading(
    _renderer: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    token = tokens[index]
    level = min(6, int(token.tag[1]) + 2)
    return f"<h{level}>" if token.nesting > 0 else f"</h{level}>"
