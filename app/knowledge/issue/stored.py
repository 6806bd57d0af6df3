"""What is stored of one issue, loaded once, and the passages of its texts that evidence points at.

`StoredIssue` is not masked. A passage is the line of the evidence, or its sentence where the line is long; it
is cut out of the masked text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Evidence, Facts, Frozen
from app.extract.redact import mask_secrets
from app.starter.card import parse_card
from app.store.derived.readings import all_links_to, find_facts, links_from
from app.store.github.issues import find_cards, find_comments, get_issue
from app.store.records import CARD, CommentRecord, IssueRecord, LinkRecord


class IssueHead(Frozen):
    """An issue as lists begin with it; the title is masked."""

    repo: str
    number: int
    title: str
    url: str
    state: str


class Quote(Frozen):
    """The words that say a thing; `text` stands so in its source, `…` where it was cut."""

    text: str
    source: str = Field(description='"title", "body", "comment:<id>", "card", or "#<number>" of another text')
    url: str


LINE_CHARS = 160
"""A line up to this length is a passage as a whole; of a longer one the sentence is."""
PASSAGE_CHARS = 300
AROUND_CHARS = 110
"""What is kept on each side of the evidence where even its sentence is too long."""
QUOTES_MAX = 3

_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
_FIGURE = re.compile(r"\d+(?:\.\d+)*")
_BULLET = re.compile(r"(?:[ \t>]|[-*•](?=\s)){1,20}")


class Sources:
    """The stored texts of one issue, not masked, each under the name its evidence calls it by.

    Args:
        url: the issue's address; comments are places below it.
    """

    def __init__(self, url: str, texts: Mapping[str, str], evidence: Sequence[Evidence] = ()) -> None:
        self._url = url
        self._texts = texts
        self._evidence = evidence
        self._masked: dict[str, str] = {}

    def quotes(self, field: str, value: str | None = None) -> tuple[Quote, ...]:
        """The passages of a field and what is below it, or of one value only; the surest first, each once."""
        named = [item for item in self._evidence if item.field == field or item.field.startswith(f"{field}.")]
        if value is not None:
            named = [item for item in named if _is_same(mask_secrets(item.value), value)]
        found: dict[tuple[str, str], Quote] = {}
        for item in sorted(named, key=lambda item: -item.confidence):
            quote = self.quote(item)
            found.setdefault((quote.source, quote.text), quote)
        return tuple(found.values())[:QUOTES_MAX]

    def quote(self, item: Evidence) -> Quote:
        """The passage of one piece of evidence; its own words where they are not found at their place."""
        text = self._texts.get(item.source, "")
        there = text[item.start : item.end]
        if not item.quote or mask_secrets(item.quote) not in {there, mask_secrets(there)}:
            quote = clipped(mask_secrets(item.quote))
        else:
            if item.source not in self._masked:  # most texts are long, and few are quoted from
                self._masked[item.source] = mask_secrets(text)
            quote = passage(self._masked[item.source], item.start, item.end)
        return Quote(text=quote, source=item.source, url=self.address(item.source))

    def address(self, source: str) -> str:
        """Where a source can be read."""
        kind, _, key = source.partition(":")
        return f"{self._url}#issuecomment-{key}" if kind == "comment" and key.isdigit() else self._url


def passage(text: str, start: int, end: int) -> str:
    """The line around a span, its sentence if the line is long, or the words next to it."""
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
    low, high = _to_blank(text, max(first, start - AROUND_CHARS), -1), _to_blank(text, end + AROUND_CHARS, 1)
    low, high = max(first, low), min(last, high)
    return ("… " if low > first else "") + text[low:high].strip() + (" …" if high < last else "")


def clipped(text: str, limit: int = PASSAGE_CHARS) -> str:
    """A text cut at a blank."""
    text = text.strip()
    if len(text) <= limit:
        return text
    at = max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit))
    return text[: at if at > 0 else limit].rstrip() + " …"


def figures_stand(value: str, quotes: Iterable[Quote]) -> bool:
    """Whether every figure of a value stands in one of its quotes."""
    quoted = set(_FIGURE.findall(" ".join(quote.text for quote in quotes)))
    return quoted.issuperset(_FIGURE.findall(value))


def _is_same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _to_blank(text: str, at: int, step: int) -> int:
    """The next place beside a blank, so that no word and no figure is cut."""
    while 0 < at < len(text) and not text[at - 1].isspace():
        at += step
    return at


@dataclass(frozen=True, slots=True)
class StoredIssue:
    """An issue with its people's words; `facts` is None while it is not read, `card` where it has none."""

    repo: str
    repo_id: int
    issue: IssueRecord
    facts: Facts | None
    comments: tuple[CommentRecord, ...]
    card: str | None

    @property
    def body(self) -> str:
        """The text of the issue, or the log of its card while only that is known."""
        if self.card is not None and self.issue.origin == CARD:
            return parse_card(self.card).log
        return self.issue.body

    def sources(self) -> Sources:
        """The texts that evidence points into, with that evidence."""
        card = {} if self.card is None else {"card": self.card}
        comments = {f"comment:{comment.id}": comment.body for comment in self.comments}
        texts = {"title": self.issue.title, "body": self.body, **card, **comments}
        return Sources(self.issue.url, texts, self.facts.evidence if self.facts else ())


@dataclass(frozen=True, slots=True)
class LinkEnds:
    """The links from an issue, and those at it: (key of the repository, number, kind, reason)."""

    out: tuple[LinkRecord, ...]
    into: tuple[tuple[int, int, str, str], ...]


def load_issue(session: Session, repo: str, number: int) -> StoredIssue:
    """What stands under a number.

    Raises:
        NotFoundError: nothing does.
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
    """The links of an issue, of all kinds, at both ends."""
    return LinkEnds(tuple(links_from(session, repo_id, number)), tuple(all_links_to(session, repo, number)))
