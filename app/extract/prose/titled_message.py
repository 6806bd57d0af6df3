"""Find the error message in an issue's title, if neither logs nor prose show an error.

In: a `Document`. Out: an `ErrorRecord` of the likeliest span of the title that reads as a program's message
("list index out of range"), not as a person's description ("fails with long prompts"). Method: every range
from a clause's start to a clause's end is a candidate; a logistic regression over its words, its neighbours
and its place decides. It is learned by `python -m app.train.titled_message` from issues whose log shows the
message that their title quotes, and stored with its metrics in `titled_message.json`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, inf
from pathlib import Path
from typing import NamedTuple

from app.extract.log.lines import LogLine
from app.extract.log.messages import wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.rules.patterns import pattern
from app.extract.text.document import Document

RULE = "said.title_message"
WEIGHTS_FILE = Path(__file__).with_name("titled_message.json")
MIN_CHARS, MAX_CHARS, MIN_WORDS = 8, 200, 2
MAX_SPANS = 150
MAX_COUNTED_WORDS = 12
"""Longer spans share one feature of length."""

_TAGS = pattern(r"^(?:\s*\[[^\]]{0,40}\]\s*[:：]?){0,6}\s*")
_TAG = pattern(r"^\s*\[([^\]]{0,40})\]")
_START = pattern(
    r"(?i): |：| - | — |, |; |，|\. |\(|[\"“`']|\b(?:due to|because(?: of)?|caused by|with|by|get(?:s|ting)?"
    r"|got|raises?|throws?|shows?|says?|reports?|errors?|message|exception|causes?|leads to|results in"
    r"|return(?:s|ing)|encounter\w*|assert|that|is|fail(?:s|ed)?|and|but)\b[:：]? "
)
"""What a message may stand behind."""
_END = pattern(
    r"(?i) (?:when|while|if|in|on|with|for|but|after|during|using|at|by|and|due|because|from|under|as)"
    r" |(?i) errors? |\. |, |; |，|\)|[\"”`']|[:：] | - | \("
)
"""What a message may end at."""
_EDGES = " .`\"'“”:"
_OPENING, _CLOSING = frozenset("\"`'“"), frozenset("\"`'”")
_IDENTIFIER = pattern(r"[_/.=]|[a-z][A-Z]|\d[A-Za-z]|[A-Za-z]\d")
_NUMBER = pattern(r"^[\d.,%x*-]+$")
_WORD = pattern(r"\pL+(?:['’][a-z]+)?|\d+|[^\w\s]|_")


Span = tuple[int, int]
MAX_SUM = 700.0
"""The largest sum whose exponential is finite."""


class Word(NamedTuple):
    """A word of a title, and where it stands."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TitleWeights:
    """The learned weights; spans with a probability of at least `threshold` are messages."""

    intercept: float
    threshold: float
    weights: dict[str, float]


@lru_cache(maxsize=1)
def load_weights() -> TitleWeights:
    """Load the learned weights."""
    data = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return TitleWeights(data["intercept"], data["threshold"], data["weights"])


def find_titled_message(document: Document, least: float = 0.0) -> ErrorRecord | None:
    """Return the message that the title gives, or None; "assert …" is an AssertionError.

    `least`: the smallest probability to believe, if it is above the learned threshold.
    """
    title, used = document.sources["title"], load_weights()
    chance, (start, end) = likeliest(title, used)
    words, with_next_word = title[start:end], title[start : end + len(" errors")]
    if chance < max(used.threshold, least) or wrapper_rule(words) or wrapper_rule(with_next_word):
        return None
    is_assertion = words.startswith("assert ") or title[:start].endswith("assert ")
    line = LogLine(0, words, "", "", start, end, words)
    return ErrorRecord("AssertionError" if is_assertion else None, words, line, rule=RULE)


def likeliest(title: str, used: TitleWeights) -> tuple[float, Span]:
    """Return the span that is most likely a program's message, with its probability; 0 without spans."""
    words = words_of(title)
    scored = ((_sum(features_of(title, words, span), used), span) for span in spans_of(title))
    total, span = max(scored, default=(-inf, (0, 0)))
    return 1.0 / (1.0 + exp(-max(total, -MAX_SUM))), span


def _sum(features: Iterable[str], used: TitleWeights) -> float:
    return used.intercept + sum(used.weights.get(name, 0.0) for name in set(features))


def spans_of(title: str) -> tuple[Span, ...]:
    """Return the candidate ranges of a title, in code points, without tags and quotation marks.

    One that holds half of a pair of back-ticks is none.
    """
    first = _TAGS.match(title).end()
    starts = sorted({first, *(found.end() for found in _START.finditer(title) if found.end() > first)})
    ends = sorted({len(title), *(found.start() for found in _END.finditer(title) if found.start() > first)})
    spans: dict[Span, None] = {}
    for start in starts:
        for end in ends:
            words = title[start:end].strip(_EDGES)
            if words.count("`") % 2:
                words = title[start:end].strip(_EDGES.replace("`", ""))
            is_whole = words.count("`") % 2 == 0
            if is_whole and MIN_CHARS <= len(words) <= MAX_CHARS and len(words.split()) >= MIN_WORDS:
                left = title.index(words, start)
                spans[left, left + len(words)] = None
    return tuple(spans)[:MAX_SPANS]


def words_of(title: str) -> tuple[Word, ...]:
    """Return the words behind a title's tags in lower case; names and numbers as IDENTIFIER and NUMBER."""
    found: list[Word] = []
    at = _TAGS.match(title).end()
    for piece in title[at:].split():
        at = title.index(piece, at)
        bare = piece.strip("`'\"()[],.:;")
        kind = "IDENTIFIER" if _IDENTIFIER.search(bare) else "NUMBER" if _NUMBER.match(bare) else ""
        if kind:
            start = at + piece.index(bare)
            found.append(Word(kind, start, start + len(bare)))
        else:
            parts = _WORD.finditer(piece)
            found += (Word(part.group().lower(), at + part.start(), at + part.end()) for part in parts)
        at += len(piece)
    return tuple(found)


def features_of(title: str, words: Sequence[Word], span: Span) -> Iterator[str]:
    """Yield the features of a span: its words and pairs of words, what stands beside it, its shape."""
    start, end = span
    inside = [word.text for word in words if start <= word.start and word.end <= end]
    before = [word.text for word in words if word.end <= start][-2:]
    behind = [word.text for word in words if word.start >= end][:2]
    for word in inside:
        yield f"w={word}"
    for one, other in pairwise(inside):
        yield f"b={one} {other}"
    if inside:
        yield f"first={inside[0]}"
        yield f"last={inside[-1]}"
    for at, word in enumerate(reversed(before)):
        yield f"L{at}={word}"
    for at, word in enumerate(behind):
        yield f"R{at}={word}"
    yield f"LL={' '.join(before)}"
    if not before:
        yield "L=^"
    if not behind:
        yield "R=$"
    is_opened, is_closed = title[start - 1 : start] in _OPENING, title[end : end + 1] in _CLOSING
    yield f"quotes={is_opened}{is_closed}"
    if title[start].isupper():
        yield "upper"
    yield f"words={min(len(inside), MAX_COUNTED_WORDS) // 2}"
    yield f"identifiers={round(4 * inside.count('IDENTIFIER') / max(1, len(inside)))}"
    yield f"tag={_tag_of(title)}"


@lru_cache(maxsize=2)
def _tag_of(title: str) -> str:
    tag = _TAG.match(title)
    return tag.group(1).lower() if tag else ""
