"""Decide whether a remedy is to apply a thing or to leave it out, from the clause around it.

In: a `Sentence` and a remedy read in it. Out: the remedy with its polarity; None if its clause denies it.
"""

from dataclasses import replace

from app.extract.lists import load
from app.extract.remedies.changes import clause_of, split_clauses
from app.extract.remedies.cues import SUCCESS, find_cues
from app.extract.remedies.sentences import RemedyStatement
from app.extract.remedies.typed import after_unset, is_left_out
from app.extract.rules.patterns import pattern
from app.extract.statements.candidates import BAD, GOOD, NEGATIONS
from app.extract.statements.tokens import tokenise
from app.extract.text.sentences import Sentence

MAX_CUE_GAP = 3
"""Maximum number of characters between a change and the success it is the subject of: a quote, a space."""

_LACKING = ("without the ", "without ")
_MARKS = "`*\"'"
_VAGUE: frozenset[str] = frozenset(load("statements")["vague"])
_COMPARED = pattern(r"(?i)\b(?:than|compared|versus|vs)\b")
"""A comparison names both sides: "it is slower than without --x"."""

_REGARDLESS = pattern(r"(?i)\b(?:still|also|even|same|identical(?:ly)?|reproduc\w*|regardless)\b")
"""It fails with and without a thing, which is neither cause nor remedy."""

_MISSED = pattern(r"(?i)\bfail(?:s|ed|ing)? to(?: \w+){1,3}")
"""A success that is missed: "it fails to start correctly"."""


def with_polarity(sentence: Sentence, item: RemedyStatement) -> RemedyStatement | None:
    """Return a remedy with `without` set if the words around it remove it.

    Where only a failure is told, "it hangs without --x" and "it hangs when --x is not set" ask for "--x", "it
    hangs only with --x" asks to leave it out; "when I set --x, it hangs" and "it also hangs without --x" are
    none. In "--x fixes it I also tried --y it did not" the failed attempt is not "--x".
    """
    if item.source != sentence.source or not sentence.start <= item.start < sentence.end:
        return item
    start, end = item.start - sentence.start, item.end - sentence.start
    if item.outcome == "fails":
        cues = find_cues(clause_of(sentence, end))
        is_praised = any(rule["side"] != "right" and at <= MAX_CUE_GAP for rule, (at, _) in cues)
        return None if is_praised else item
    clauses = split_clauses(sentence)
    clause = next((one for one in clauses if start < one.start + len(one.text)), clause_of(sentence))
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
    if (lead or lacking or behind is not None) and _REGARDLESS.search(rest):
        return None
    if lead or lacking or behind is not None:
        return replace(item, action=item.action[len(lead) :], start=item.start + len(lead), without=False)
    return item if item.without else None


def _tells_only_failure(text: str) -> bool:
    """True if a text names a failure, and neither a success, a negation nor a comparison."""
    text = _MISSED.sub(" fail ", text)
    tokens = tokenise(text)
    kinds = {token.kind for token in tokens} - _VAGUE
    is_denied = any(token.low in NEGATIONS - {"without"} for token in tokens)
    is_good = is_denied or bool(kinds & GOOD) or bool(SUCCESS.search(text))
    return bool(kinds & BAD) and not is_good and not _COMPARED.search(text)
