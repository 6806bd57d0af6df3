"""Decide whether a remedy is to apply a thing or to leave it out, from the clause around it.

In: a `Sentence` and a remedy read in it. Out: the remedy with its polarity; None if its clause denies it.
"""

from dataclasses import replace

from app.extract.lists import load
from app.extract.remedies.changes import clause_of, split_clauses
from app.extract.remedies.cues import find_cues, states_success
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

_NEARBY = pattern(
    r"(?i)[,;(，；。→]|\.\s|\s[-–—]+\s|(?-i:\s(?:If|Please|This|For|However)\s)"
    r"|\b(?:but|so|while|whereas|however|or|when|if|unless|to|for|until|because|since|as|instead|rather)\b"
)
"""Where what is said of a change ends: after it, something else is told."""

_GOT = pattern(
    r"(?i)\band (?:then |it |i |we )*(?:got|get|gets|saw|see|hit|throws?|fail\w*|crash\w*|hangs?)\b.*"
)
_WORSE = pattern(
    r"(?i)\b(?:(?:throughput|performance|accuracy|speed)\b.*\blower|slower|worse)\b[^,;]{0,20}\bthan\b"
)
_CAUSES = pattern(r"(?i)\b(?:causes?|leads? to|results? in)\b")
_ANYWAY = pattern(
    r"(?i)\b(?:reproduc\w*|persists?|still \w+|also \w+)(?: \w+){0,2} without (?:it|that|them)\b"
)

_MISSED = pattern(r"(?i)\bfail(?:s|ed|ing)? to(?: \w+){1,3}|\bthis (?:\w+ )?blocks\b")
"""A success that is missed: "it fails to start correctly"."""


def with_polarity(sentence: Sentence, item: RemedyStatement) -> RemedyStatement | None:
    """Return a remedy with `without` set if the words around it remove it.

    Where only a failure is told, "it hangs without --x" and "it hangs when --x is not set" ask for "--x", "it
    hangs only with --x" asks to leave it out; "when I set --x, it hangs" and "it also hangs without --x" are
    none. In "--x fixes it I also tried --y it did not" the failed attempt is not "--x".
    """
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
    is_lacking = bool(lead or lacking)
    if _is_contradicted(sentence, item, after, is_lacking=is_lacking, is_unset=behind is not None):
        return None
    if not _tells_only_failure(rest):
        is_removed = item.without or behind is not None or is_left_out(before)
        return replace(item, without=is_removed)
    if (is_lacking or behind is not None) and not _REGARDLESS.search(rest):
        return replace(item, action=item.action[len(lead) :], start=item.start + len(lead), without=False)
    return item if item.without and not is_lacking and behind is None else None


def _is_contradicted(
    sentence: Sentence, item: RemedyStatement, after: str, *, is_lacking: bool, is_unset: bool
) -> bool:
    """True if the sentence says that the failure is there in spite of a remedy, or because of it."""
    if item.without:
        return bool(_ANYWAY.search(sentence.text))
    if is_lacking:
        return bool(_CAUSES.search(item.action + _near(after)))
    return not is_unset and _is_blamed(item, after)


def _is_blamed(item: RemedyStatement, after: str) -> bool:
    """True if the words right after a change tell that it fails, whatever the rest of the sentence tells.

    "I set --x to 0.9 and got an error, so I changed it to 0.8".
    """
    got = _GOT.search(item.action)
    return bool(_WORSE.search(after)) or _tells_only_failure(f"{got.group(0) if got else ''}{_near(after)}")


def _near(after: str) -> str:
    """Return the words after a change up to where something else is told."""
    stop = _NEARBY.search(after)
    return after[: stop.start()] if stop else after


def _tells_only_failure(text: str) -> bool:
    """True if a text names a failure, and neither a success, a negation nor a comparison."""
    text = _MISSED.sub(" fail ", text)
    tokens = tokenise(text)
    kinds = {token.kind for token in tokens} - _VAGUE
    is_denied = any(token.low in NEGATIONS - {"without"} for token in tokens)
    is_good = is_denied or bool(kinds & GOOD) or states_success(text)
    return bool(kinds & BAD) and not is_good and not _COMPARED.search(text)
