"""Evidence on an issue's page: numbered marks in its text, and quotes from texts that are not on the page.

A text with marks is escaped and shown verbatim, so that offsets of the raw text apply. A text without marks
is rendered as Markdown and sanitized by nh3; images become links, as pages load nothing from other sites.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
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
    """The numbered evidence of one issue; equal spans share a number."""

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
        """Number of characters of the body that are not shown."""
        self._places = {place: number for number, place in enumerate(places, start=1)}
        self._numbers: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for item in evidence:
            self._numbers[item.field].append((item.value, self._places[_place(item)]))

    def numbers(self, field: str, value: str | None = None) -> tuple[int, ...]:
        """Return the numbers of at most three quotes that state a field, or one value of it.

        A value is matched exactly (ignoring case), or else as a part of the evidence's value.
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
        return mark_text(self._issue.title, self._spans("title"))

    def body(self) -> Markup:
        """Return the body: verbatim with its marks, or rendered as Markdown if it has none.

        A starter card has a log as its body, which is never rendered as Markdown.
        """
        spans = self._spans("body")
        if not spans and self._issue.origin != "card":
            return render_markdown(self._texts["body"])
        return Markup('<div class="orig">{}</div>').format(mark_text(self._texts["body"], spans))

    def quotes(self) -> tuple[OffPageQuote, ...]:
        """Return the quotes from other texts, and those that no longer match the text at their offset."""
        return tuple(
            OffPageQuote(number, quote, *self._source(source))
            for (source, start, end, quote), number in self._places.items()
            if not self._stands(source, start, end, quote)
        )

    def _stands(self, source: str, start: int, end: int, quote: str) -> bool:
        """True if the text has the quote at these offsets; a misplaced mark would mislead."""
        return start < end and self._texts.get(source, "")[start:end] == quote

    def _spans(self, source: str) -> list[EvidenceSpan]:
        text = self._texts.get(source, "")
        return [
            EvidenceSpan(start, _word_end(text, end), number)
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


def _word_end(text: str, end: int) -> int:
    """Return where the word ends that a quote stops within; `end` if it stops at the end of a word."""
    rest = _LETTERS.match(text, end) if text[end - 1 : end].isalpha() else None
    return rest.end() if rest else end


_LETTERS = re.compile(r"[^\W\d_]{1,20}(?!\w)")


def _holds(found: str, wanted: str) -> bool:
    """True if one contains the other as a whole number or word: v0.18.0 and 0.18.0, not #362 and #36286."""
    shorter, longer = sorted((found, wanted), key=len)
    return bool(shorter) and re.search(rf"(?<![0-9]){re.escape(shorter)}(?![0-9.])", longer) is not None


TEXT_LIMIT = 200_000
"""Most characters of a text on a page; GitHub's own limit is 65,536."""

MARKDOWN_LIMIT = 20_000
"""Longest text rendered as Markdown; a longer one is shown verbatim, which is cheap."""

SHOWN_BYTES = 40_000
"""Longest text on an issue's page, in bytes after escaping: a page with its assets has at most 100 KiB."""

LINK_REL = "nofollow ugc noopener"

_WORDS = {"a", "br", "code", "del", "em", "s", "strong"}
_BLOCKS = {"blockquote", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}


@dataclass(frozen=True, slots=True)
class EvidenceSpan:
    """The span of evidence `number`, as code point offsets in the text."""

    start: int
    end: int
    number: int


def shown_part(text: str) -> str:
    """Return the start of a text, in whole lines, that fits on an issue's page."""
    part = text[:SHOWN_BYTES]
    while (size := len(escape(part).encode("utf-8", "replace"))) > SHOWN_BYTES:
        part = part[: len(part) * SHOWN_BYTES // size - 1]
    return part if len(part) == len(text) else part[: part.rfind("\n") + 1] or part


def mark_text(text: str, spans: Iterable[EvidenceSpan]) -> Markup:
    """Return the escaped text with `<mark id="eN" data-n="N">` around each span.

    Spans may nest. A span that partly overlaps an earlier one ends where that one ends. An empty span, or
    one outside the text, becomes an empty mark, so that links to it work.
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

    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        start = min(max(span.start, 0), len(text))
        copy_to(start)
        out.append(Markup('<mark id="e{0}" data-n="{0}">').format(span.number))
        open_ends.append(min(max(span.end, start), *open_ends[-1:], len(text)))
    copy_to(len(text))
    return Markup("").join(out)


def render_markdown(text: str) -> Markup:
    """Render Markdown as sanitized HTML; a long text verbatim."""
    if len(text) > MARKDOWN_LIMIT:
        return Markup('<pre class="orig">{}</pre>').format(text[:TEXT_LIMIT])
    return Markup(
        nh3.clean(
            _to_html(text),
            tags=_WORDS | _BLOCKS | _TABLES,
            attributes={"a": {"href"}, "ol": {"start"}, "*": set()},
            attribute_filter=_absolute_only,
            url_schemes={"http", "https"},
            link_rel=LINK_REL,
        )
    )


def _absolute_only(_tag: str, name: str, value: str) -> str | None:
    """Drop relative links, which would point to a wrong place on our page."""
    return value if name != "href" or value.startswith(("http://", "https://")) else None


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Return a CommonMark parser with tables, without raw HTML."""
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 12}).enable(["table", "strikethrough"])


def _to_html(text: str) -> str:
    """Render Markdown with headings two levels lower and images as links."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        for child in token.children or ():
            if child.type == "image":
                link = Markup('<a href="{}">Image: {}</a>')
                child.type = "html_inline"
                child.content = link.format(child.attrGet("src") or "", child.content or "without a name")
    return str(parser.renderer.render(tokens, parser.options, {}))
