"""Every statement of an issue page leads to its sentence: which number stands where.

In: an issue with facts and evidence. Out: for each fact the numbers to show behind it, the texts with
their numbered marks, and the quotes of sources whose text is not on the page (comments, cards).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from markupsafe import Markup

from app.extract.facts import Evidence
from app.knowledge.answers import IssueAnswer
from app.web.issue_text import Span, mark_text, render_markdown, shown_part

_ORDER = {"title": 0, "body": 1}


@dataclass(frozen=True, slots=True)
class Quote:
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
        """Numbers of the sentences that say a field, or just one value of it; at most three.

        A number behind a fact it does not say would be a false witness, so a value is looked for as it is
        written, then as a part of what the evidence says, and else has none.
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

    def quotes(self) -> tuple[Quote, ...]:
        """What is quoted from elsewhere, and what can no longer be found at its place."""
        return tuple(
            Quote(number, quote, *self._source(source))
            for (source, start, end, quote), number in self._places.items()
            if not self._stands(source, start, end, quote)
        )

    def _stands(self, source: str, start: int, end: int, quote: str) -> bool:
        """Whether the quote is where it is said to be: a mark in a wrong place would be a false witness."""
        return start < end and self._texts.get(source, "")[start:end] == quote

    def _spans(self, source: str) -> list[Span]:
        return [
            Span(start, end, number)
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


def _holds(said: str, wanted: str) -> bool:
    """Whether one stands whole inside the other: v0.18.0 and 0.18.0, not #362 and #36286."""
    shorter, longer = sorted((said, wanted), key=len)
    return bool(shorter) and re.search(rf"(?<![0-9]){re.escape(shorter)}(?![0-9.])", longer) is not None
