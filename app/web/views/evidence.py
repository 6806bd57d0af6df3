"""The evidence of an issue's page: numbered marks in its own text, and quotes of texts that stand elsewhere.

With marks a text is escaped and shown as it stands, so that an offset of the raw text is a place on the page.
Without, it is rendered as Markdown, cleaned by nh3; images become links, as no page loads anything from
elsewhere.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from app.extract.facts import Evidence
from app.knowledge.issue.view import IssueAnswer

_ORDER = {"title": 0, "body": 1}


@dataclass(frozen=True, slots=True)
class OffPageQuote:
    """A sentence from a text that is not on the page."""

    number: int
    text: str
    source: str
    url: str | None


class Citations:
    """The numbered evidence of one issue; equal places have one number."""

    def __init__(self, issue: IssueAnswer) -> None:
        evidence = issue.facts.evidence if issue.facts else ()
        places = sorted(
            {(item.source, item.start, item.end, item.quote) for item in evidence},
            key=lambda place: (_ORDER.get(place[0], 2), place),
        )
        self._issue = issue
        body = shown_part(issue.body)
        self._texts = {"title": issue.title, "body": body}
        self.left_out = len(issue.body) - len(body)
        """Characters of the body that the page has no room for."""
        self._places = {place: number for number, place in enumerate(places, start=1)}
        self._numbers: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for item in evidence:
            self._numbers[item.field].append((item.value, self._places[_place(item)]))

    def numbers(self, field: str, value: str | None = None) -> tuple[int, ...]:
        """Numbers of at most three quotes that state a field, or one value of it.

        A value is looked for as it is written, then as a part of the evidence's value.
        """
        found = self._numbers.get(field, [])
        if not found:
            below = [name for name in self._numbers if name.startswith(f"{field}.")]
            found = [pair for name in below for pair in self._numbers[name]]
        if value is not None:
            wanted = value.casefold()
            equal = [pair for pair in found if pair[0].casefold() == wanted]
            found = equal or [pair for pair in found if _holds(pair[0].casefold(), wanted)]
        return tuple(sorted({number for _, number in found}))[:3]

    def title(self) -> Markup:
        """The title with its marks."""
        return mark_text(self._issue.title, self._spans("title"))

    def body(self) -> Markup:
        """The body: as it stands with its marks, or as Markdown where nothing is marked in it.

        What a card holds in its place is a log, and a log is no Markdown.
        """
        spans = self._spans("body")
        if not spans and self._issue.origin != "card":
            return render_markdown(self._texts["body"])
        return Markup('<div class="orig">{}</div>').format(mark_text(self._texts["body"], spans))

    def quotes(self) -> tuple[OffPageQuote, ...]:
        """What is quoted from elsewhere, and what can no longer be found at its place."""
        return tuple(
            OffPageQuote(number, quote, *self._source(source))
            for (source, start, end, quote), number in self._places.items()
            if not self._stands(source, start, end, quote)
        )

    def _stands(self, source: str, start: int, end: int, quote: str) -> bool:
        """Whether the quote is at its place in the text; a mark in a wrong place would mislead."""
        return start < end and self._texts.get(source, "")[start:end] == quote

    def _spans(self, source: str) -> list[EvidenceSpan]:
        return [
            EvidenceSpan(start, end, number)
            for (where, start, end, quote), number in self._places.items()
            if where == source and self._stands(where, start, end, quote)
        ]

    def _source(self, source: str) -> tuple[str, str | None]:
        kind, _, key = source.partition(":")
        if kind == "comment":
            return "a comment", f"{self._issue.url}#issuecomment-{key}" if key.isdigit() else None
        return ("the starter card", None) if kind == "card" else (f"the {kind}", None)


def _place(item: Evidence) -> tuple[str, int, int, str]:
    return (item.source, item.start, item.end, item.quote)


def _holds(found: str, wanted: str) -> bool:
    """Whether one stands whole inside the other: v0.18.0 and 0.18.0, not #362 and #36286."""
    shorter, longer = sorted((found, wanted), key=len)
    return bool(shorter) and re.search(rf"(?<![0-9]){re.escape(shorter)}(?![0-9.])", longer) is not None


TEXT_LIMIT = 200_000
"""Most characters of a text on a page; GitHub's own limit is 65,536."""

MARKDOWN_LIMIT = 20_000
"""Longest text rendered as Markdown; a longer one is shown as it stands, which costs nothing."""

SHOWN_BYTES = 40_000
"""Most of a text on an issue's page, escaped, in bytes: a page weighs 100 KiB at most with all it loads."""

LINK_REL = "nofollow ugc noopener"

_WORDS = {"a", "br", "code", "del", "em", "s", "strong"}
_BLOCKS = {"blockquote", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}


@dataclass(frozen=True, slots=True, order=True)
class EvidenceSpan:
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


def mark_text(text: str, spans: Iterable[EvidenceSpan]) -> Markup:
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
    return Markup(
        nh3.clean(
            _markdown().render(text),
            tags=_WORDS | _BLOCKS | _TABLES,
            attributes={"a": {"href"}, "ol": {"start"}, "*": set()},
            attribute_filter=_absolute_only,
            url_schemes={"http", "https"},
            link_rel=LINK_REL,
        )
    )


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
