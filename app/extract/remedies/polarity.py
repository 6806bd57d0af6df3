"""Decide whether a remedy is to apply a thing or to leave it out, from the clause around it.

In: a `Sentence` and a remedy read in it. Out: the remedy with its polarity; None if its clause tells only a
failure, in which nothing helped.
"""

from dataclasses import replace

from app.extract.lists import load
from app.extract.remedies.changes import split_clauses
from app.extract.remedies.cues import SUCCESS
from app.extract.remedies.sentences import RemedyStatement
from app.extract.remedies.typed import after_unset, is_left_out
from app.extract.rules.patterns import pattern
from app.extract.statements.candidates import BAD, GOOD, NEGATIONS
from app.extract.statements.tokens import tokenise
from app.extract.text.sentences import Sentence

_LACKING = ("without the ", "without ")
_MARKS = "`*\"'"
_VAGUE: frozenset[str] = frozenset(load("statements")["vague"])
_COMPARED = pattern(r"(?i)\b(?:than|compared|versus|vs)\b")
"""A comparison names both sides: "it is slower than without --x"."""


def with_polarity(sentence: Sentence, item: RemedyStatement) -> RemedyStatement | None:
    """Return a remedy with `without` set if the words around it remove it.

    Where only a failure is told, "it hangs without --x" and "it hangs when --x is not set" ask for "--x", "it
    hangs only with --x" asks to leave it out, and "when I set --x, it hangs" states no remedy.
    """
    if item.outcome == "fails" or not sentence.start <= item.start < sentence.end:
        return item
    start, end = item.start - sentence.start, item.end - sentence.start
    clause = next(one for one in split_clauses(sentence) if start < one.start + len(one.text))
    before = sentence.text[clause.start : start]
    after = sentence.text[end : max(end, clause.start + len(clause.text))]
    lead = next((word for word in _LACKING if item.action.lower().startswith(word)), "")
    ahead = before.rstrip(_MARKS)
    lacking = next((word for word in _LACKING if ahead.lower().endswith(word)), "")
    behind = after_unset(after)
    rest = f"{ahead[: len(ahead) - len(lacking)]} _ {after if behind is None else behind}"
    if not _tells_only_failure(rest):
        is_removed = item.without or behind is not None or is_left_out(before)
        return replace(item, without=is_removed)
    if lead or lacking or behind is not None:
        return replace(item, action=item.action[len(lead) :], start=item.start + len(lead), without=False)
    return item if item.without else None


def _tells_only_failure(text: str) -> bool:
    """True if a text names a failure, and neither a success, a negation nor a comparison."""
    tokens = tokenise(text)
    kinds = {token.kind for token in tokens} - _VAGUE
    is_denied = any(token.low in NEGATIONS - {"without"} for token in tokens)
    is_good = is_denied or bool(kinds & GOOD) or bool(SUCCESS.search(text))
    return bool(kinds & BAD) and not is_good and not _COMPARED.search(text)
