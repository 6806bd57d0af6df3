"""Generate every span of a sentence that could name a change: many and cheap, no decisions.

In: the tokens of a sentence. Out: spans as pairs of token indexes. A span starts at a setting, a verb of
change, or after a linking word, a negation or punctuation; it ends before an outcome word, a link,
punctuation or a pronoun. On labelled sentences, 98 % of the remedies are among them.
"""

from collections.abc import Iterator, Sequence

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.statements.tokens import NAMED, Token

MAX_SPAN_TOKENS = 14
MAX_REACH_TOKENS = 16
MAX_SPANS = 96

_WORDS = load("statements")
LINKS: frozenset[str] = frozenset(_WORDS["links"])
GOOD: frozenset[str] = frozenset(_WORDS["good"])
BAD: frozenset[str] = frozenset(_WORDS["bad"])
TRIES: frozenset[str] = frozenset(_WORDS["tries"])
NEGATIONS: frozenset[str] = frozenset(_WORDS["negations"])
VERBS: frozenset[str] = frozenset(_WORDS["verbs"])
_CHOICES: frozenset[str] = frozenset(_WORDS["choices"])
_BREAKS: frozenset[str] = frozenset(_WORDS["breaks"])
_AUXILIARIES: frozenset[str] = frozenset(_WORDS["auxiliaries"])
_STARTS = LINKS | _CHOICES
_EDGES = frozenset(["the", "a", "an", "and", "to", "or", "is", "also", "just", "it", "of"])
_PUNCTUATION = frozenset(",;:!?()[]{}|—–→。，；：.")
_STARTING_PUNCTUATION = _PUNCTUATION | frozenset("*-•")
_CUE = pattern("|".join(sorted({word for words in (GOOD, BAD, TRIES, NEGATIONS) for word in words})))
_KEPT = frozenset(["no", "without", "normal", "same", "issue"])
"""Outcome words that may be part of a change: "without LoRA", "normal mode"."""


def has_cue(low: str) -> bool:
    """True if a lower-case text contains any cue as a substring; cheaper than tokenising."""
    return _CUE.search(low) is not None


def may_state(tokens: Sequence[Token]) -> bool:
    """True if a sentence contains any word of outcome, attempt or negation."""
    return any(t.kind in GOOD or t.kind in BAD or t.kind in TRIES or t.low in NEGATIONS for t in tokens)


def find_spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return all candidate spans in reading order, as (first token, end token); the end is exclusive."""
    found: dict[tuple[int, int], None] = {}
    for start in range(len(tokens)):
        if not _may_start(tokens, start):
            continue
        if tokens[start].kind in NAMED:
            found[start, start + 1] = None
        for end in _ends(tokens, start):
            last = end
            while last > start and not _is_word(tokens[last - 1]):
                last -= 1
            while last > start and tokens[last - 1].low in _EDGES:
                last -= 1
            if _can_name_change(tokens, start, last):
                found[start, last] = None
        if len(found) >= MAX_SPANS:
            break
    return sorted(found)


def _is_word(token: Token) -> bool:
    return token.text[-1].isalnum() or token.text[-1] in "`_)]#\"'" or token.kind in NAMED


def _can_name_change(tokens: Sequence[Token], start: int, end: int) -> bool:
    """True if tokens can name a change: "not using X" can, "not occur with X" is an outcome."""
    if not 1 <= end - start <= MAX_SPAN_TOKENS:
        return False
    first = tokens[start]
    if end - start == 1:
        return not (first.low in LINKS or first.low in _BREAKS or len(first.text) == 1)
    return not (first.low in NEGATIONS and tokens[start + 1].kind in BAD)


def _may_start(tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    if not (token.text[0].isalnum() or token.text[0] in "`-_#"):
        return False
    if token.low in LINKS or token.low in _CHOICES or token.kind in VERBS or token.kind in NAMED:
        return True
    if at == 0 or token.low in NEGATIONS:
        return True
    before = tokens[at - 1]
    return before.text in _STARTING_PUNCTUATION or before.low in _BREAKS or before.low in LINKS


def _ends(tokens: Sequence[Token], start: int) -> Iterator[int]:
    """Yield the possible ends of a span that begins at `start`: before each token that can close it."""
    at = start
    while at < len(tokens) and at - start < MAX_REACH_TOKENS:
        token = tokens[at]
        if at > start:
            if token.text in _PUNCTUATION or token.low in _BREAKS:
                break
            is_outcome = (token.kind in GOOD or token.kind in BAD) and token.low not in _KEPT
            if is_outcome or token.low in LINKS or token.low in _AUXILIARIES or tokens[at - 1].kind in NAMED:
                yield at
        at += 1
    yield at
