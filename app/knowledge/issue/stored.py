"""One stored issue with everything loaded, and quotes from its texts for its evidence.

`StoredIssue` is not masked. A passage is the line of the evidence, or its sentence if the line is long, taken
from the masked text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Evidence, Facts, Frozen
from app.extract.redact import mask_secrets
from app.starter.card import as_read, parse_card, text_around
from app.store.derived.readings import all_links_to, find_facts, links_from
from app.store.github.issues import find_cards, find_comments, get_issue
from app.store.records import CARD, CommentRecord, IssueRecord, LinkRecord


class IssueHead(Frozen):
    """The first fields of an issue in every list; the title is masked."""

    repo: str
    number: int
    title: str
    url: str
    state: str


class Quote(Frozen):
    """A quote; `text` is verbatim from its source, with `…` where it was cut."""

    text: str
    source: str = Field(description='"title", "body", "comment:<id>", "card", or "#<number>" of another text')
    url: str


LINE_CHARS = 160
"""Longest line quoted as a whole; of a longer one only the sentence is quoted."""
PASSAGE_CHARS = 300
AROUND_CHARS = 110
"""Text kept on each side of the evidence if its sentence is too long as well."""
QUOTES_MAX = 3

_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
_FIGURE = re.compile(r"\d+(?:\.\d+)*")
_BULLET = re.compile(r"(?:[ \t>]|[-*•](?=\s)){1,20}")


class Sources:
    """The unmasked texts of one issue by source name, as used in `Evidence.source`.

    Args:
        url: the issue's URL, to which comment anchors are added.
    """

    def __init__(self, url: str, texts: Mapping[str, str], evidence: Sequence[Evidence] = ()) -> None:
        self._url = url
        self._texts = texts
        self._evidence = evidence
        self._masked: dict[str, str] = {}

    def quotes(self, field: str, value: str | None = None) -> tuple[Quote, ...]:
        """Return up to `QUOTES_MAX` quotes for a field and its subfields, or for one value; surest first."""
        named = [item for item in self._evidence if item.field == field or item.field.startswith(f"{field}.")]
        if value is not None:
            named = [item for item in named if _is_same(mask_secrets(item.value), value)]
        found: dict[tuple[str, str], Quote] = {}
        for item in sorted(named, key=lambda item: -item.confidence):
            quote = self.quote(item)
            found.setdefault((quote.source, quote.text), quote)
        return tuple(found.values())[:QUOTES_MAX]

    def quote(self, item: Evidence) -> Quote:
        """Return the passage of one piece of evidence; its stored quote if the text has changed there."""
        text = self._texts.get(item.source, "")
        there = text[item.start : item.end]
        if not item.quote or mask_secrets(item.quote) not in {there, mask_secrets(there)}:
            quote = clipped(mask_secrets(item.quote))
        else:
            if item.source not in self._masked:  # most texts are long, and few are quoted from
                self._masked[item.source] = mask_secrets(text)
            first, last = text_around(text, item.start, item.end) if item.source == CARD else (0, len(text))
            masked = self._masked[item.source][first:last]
            quote = passage(masked, item.start - first, item.end - first)
            quote = as_read(quote) if text[:first].endswith('"') else quote
        return Quote(text=quote, source=item.source, url=self.address(item.source))

    def address(self, source: str) -> str:
        """Return the URL of a source."""
        kind, _, key = source.partition(":")
        return f"{self._url}#issuecomment-{key}" if kind == "comment" and key.isdigit() else self._url


def passage(text: str, start: int, end: int) -> str:
    """Return the line around a span, its sentence if the line is long, or the adjacent words."""
    if "\n" in text[start:end].strip("\n"):
        return clipped(text[start:end])
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    bullet = _BULLET.match(text, first, start)
    first = bullet.end() if bullet else first
    if last - first > LINE_CHARS:
        before = [match.end() for match in _SENTENCE_END.finditer(text, first, start)]
        after = _SENTENCE_END.search(text, end, last)
        first, last = (before[-1] if before else first), (after.end() if after else last)
    if last - first <= PASSAGE_CHARS:
        return text[first:last].strip()
    low, high = _to_space(text, max(first, start - AROUND_CHARS), -1), _to_space(text, end + AROUND_CHARS, 1)
    low, high = max(first, low), min(last, high)
    return ("… " if low > first else "") + text[low:high].strip() + (" …" if high < last else "")


def clipped(text: str, limit: int = PASSAGE_CHARS) -> str:
    """Cut a text to `limit` characters at whitespace and append `…`."""
    text = text.strip()
    if len(text) <= limit:
        return text
    at = max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit))
    return text[: at if at > 0 else limit].rstrip() + " …"


def figures_stand(value: str, quotes: Iterable[Quote]) -> bool:
    """True if every number in a value is in one of its quotes."""
    quoted = set(_FIGURE.findall(" ".join(quote.text for quote in quotes)))
    return quoted.issuperset(_FIGURE.findall(value))


def _is_same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _to_space(text: str, at: int, step: int) -> int:
    """Return the nearest position after whitespace from `at` in direction `step`."""
    while 0 < at < len(text) and not text[at - 1].isspace():
        at += step
    return at


@dataclass(frozen=True, slots=True)
class StoredIssue:
    """An issue with its comments; `facts` is None until it is read, `card` if it has no starter card."""

    repo: str
    repo_id: int
    issue: IssueRecord
    facts: Facts | None
    comments: tuple[CommentRecord, ...]
    card: str | None

    @property
    def body(self) -> str:
        """The body of the issue, or the log of its card until GitHub is synced."""
        if self.card is not None and self.issue.origin == CARD:
            return parse_card(self.card).log
        return self.issue.body

    def sources(self) -> Sources:
        """Return the texts with the evidence found in them."""
        card = {} if self.card is None else {"card": self.card}
        comments = {f"comment:{comment.id}": comment.body for comment in self.comments}
        texts = {"title": self.issue.title, "body": self.body, **card, **comments}
        return Sources(self.issue.url, texts, self.facts.evidence if self.facts else ())


@dataclass(frozen=True, slots=True)
class LinkEnds:
    """The links from an issue, and those to it: (repository key, number, kind, reason)."""

    out: tuple[LinkRecord, ...]
    into: tuple[tuple[int, int, str, str], ...]


def load_issue(session: Session, repo: str, number: int) -> StoredIssue:
    """Load an issue with its comments, facts and card.

    Raises:
        NotFoundError: the issue is not stored.
    """
    repo_id, issue = get_issue(session, repo, number)
    return StoredIssue(
        repo,
        repo_id,
        issue,
        facts=find_facts(session, repo_id, [number]).get(number),
        comments=tuple(find_comments(session, repo_id, [number]).get(number, ())),
        card=find_cards(session, repo_id, [number]).get(number),
    )


def load_links(session: Session, repo_id: int, repo: str, number: int) -> LinkEnds:
    """Load the links of all kinds from and to an issue."""
    return LinkEnds(tuple(links_from(session, repo_id, number)), tuple(all_links_to(session, repo, number)))
