"""Known errors: the stored issues that contain an error message, whatever else they report.

In: the message of a log's root cause. Out: the issues with a passage that contains most of it. The index
ignores word positions, so each candidate's text is read: the words must occur close together. Names in the
message (in quotes, options) are ignored, unless the name alone identifies the failure; then it must occur
verbatim. Generic messages of Python or the operating system identify a failure only together with the frame
that raised them. Thresholds were set on whole real logs (`tests/benchmarks/common_errors.py`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from app.extract.rules.rules import load_rule_set
from app.match.search.bm25 import Query, affordable, gains_of_holders, weigh
from app.match.search.log_query import has_words, name_words, names_in, own_words, wrong_names
from app.match.search.terms import FRAME, TEXT, grams_of
from app.store.derived.search_index import Key, find_postings, numbers_by_repository, term_id
from app.store.github.issues import find_texts

SHARE_MIN = 0.65
"""Minimum coverage of the message, names excluded, by one passage."""
NATS_MIN, WORDS_MIN = 17.0, 3
"""Minimum information and words: unrelated messages may share less."""
NAME_NATS_MIN = 8.0
"""Minimum information if a name alone, or the frame, identifies the failure."""
OPENING_SHARE_MIN = 0.9
"""Minimum coverage of the message's opening alone: the text after a colon is often machine-specific."""
REPORTS_MIN = 2
"""Issues needed to call an error known; one is enough if a name alone identifies the failure."""
NAMES_MAX = 4
"""Maximum number of names (such as unknown options) to search for."""
POSTINGS_MAX = 30_000
READ_MAX = 200
"""Maximum number of issues whose text is read, the best covered first."""
PLACES_MAX = 12
"""Maximum number of passages checked in one text."""
PASSAGE_CHARS = 60
"""Characters that a passage extends beyond the message's length, on either side."""
_SYSTEM_RULE = "common.system"
"""Matches operating system messages that identify a failure by themselves: port in use, disk full."""
_ERRNO_RULE = "common.errno"
_OPENING = re.compile(r": |, (?=(?:please|try|consider)\b)|\. |; | \((?=(?:[^()]|\([^()]*\))*\)\W*$)")
"""The end of a message's opening; a bracket counts only at the end of the sentence."""
_ERRNO = re.compile(r"^\[?(?:Errno|WinError) -?\d+\]?:? *", re.IGNORECASE)
_NAME_PART = re.compile(r"[\w.-]+")
"""A part of a name; `X from module` has three."""
_BETWEEN = r"\W*(?:--\S+(?: [^-\s]\S*)*\s+)*(?<![\w.-])"
"""Text allowed between the fixed words and the name: quotes, and other options with their values."""
_GENERIC_RULES = frozenset(
    f"common.{name}"
    for name in ("attribute", "conversion", "http", "index", "key", "module", "parser", "signature", "tensor")
)
_VALIDATION_RULE = "common.validation"


@dataclass(frozen=True, slots=True)
class _Wording:
    """One way to search for a message: its words except `left_out`, and a pattern for its `name`.

    Attributes:
        share: minimum coverage of `text`; `nats`: minimum information; `reports`: minimum number of issues.
        at_frame: the issue must contain the frame that raised the error, too.
    """

    text: str
    share: float
    left_out: frozenset[str] = frozenset()
    name: str = ""
    nats: float = NATS_MIN
    reports: int = REPORTS_MIN
    at_frame: bool = False


def find_reports_of(
    session: Session,
    message: str,
    repo_ids: Sequence[int],
    *,
    exclude: Collection[Key] = frozenset(),
    likeliest: Key | None = None,
    frame: str | None = None,
) -> dict[Key, float]:
    """Return the issues that contain a message, each with its coverage; empty if there are too few.

    Args:
        exclude: issues to leave out.
        likeliest: the best match of the search; enough alone if it contains the message and its names.
        frame: `file.py:function` that raised the error.
    """
    alone: dict[Key, float] = {}
    for wording in _wordings(message):
        if wording.at_frame and not frame:
            continue
        found = _holding(session, wording, repo_ids, exclude)
        if wording.at_frame and frame and found:
            raised = set(map(tuple, find_postings(session, [term_id(FRAME, frame)])[:, 1:].tolist()))
            found = {key: share for key, share in found.items() if key in raised}
        if len(found) >= wording.reports:
            return found
        if likeliest is not None and likeliest in found:
            alone = found
    if alone and likeliest is not None:
        text = find_texts(session, likeliest[0], [likeliest[1]])[likeliest[1]].lower()
        if all(name in text for name in names_in(message)):
            return alone
    return {}


def _wordings(message: str) -> Iterator[_Wording]:
    """Yield the ways to search for a message, the strictest first."""
    if not has_words(message):
        return
    rules = load_rule_set("common_errors")
    met = {rule.id for rule in rules.meeting(message)}
    words, names = wrong_names(message)
    for name in names[:NAMES_MAX]:
        text = f"{words} {name}"
        parts = _NAME_PART.findall(name.lower())
        if len(parts) > 1 or not (met | {rule.id for rule in rules.meeting(text)}) & _GENERIC_RULES:
            standing = r"\W+".join(map(re.escape, parts))
            standing = rf"{re.escape(words.lower())}{_BETWEEN}{standing}(?![\w-]|\.\w)"
            yield _Wording(text, SHARE_MIN, name=standing, nats=NAME_NATS_MIN, reports=1)
    if words:
        return
    if _SYSTEM_RULE in met:
        yield _Wording(_ERRNO.sub("", message), SHARE_MIN, reports=1)
        return
    if met & (_GENERIC_RULES | {_VALIDATION_RULE}):
        yield _Wording(message, SHARE_MIN, nats=NAME_NATS_MIN, reports=1, at_frame=True)
        return
    message = _without_system_words(message)
    left_out = frozenset(name_words(message))
    yield _Wording(message, SHARE_MIN, left_out)
    opening, *rest_of_it = _OPENING.split(message, maxsplit=1)
    if rest_of_it:
        yield _Wording(opening, OPENING_SHARE_MIN, left_out)


def _without_system_words(message: str) -> str:
    """Return the message up to the operating system's words."""
    rule = next(rule for rule in load_rule_set("common_errors").rules if rule.id == _ERRNO_RULE)
    match = rule.pattern.search(message)
    return message[: match.start()] if match is not None else message


def _holding(
    session: Session, wording: _Wording, repo_ids: Sequence[int], exclude: Collection[Key]
) -> dict[Key, float]:
    """Return the issues with a passage that contains the wording, each with its coverage."""
    terms = [term for term in own_words(wording.text) if not wording.left_out & set(term.split())]
    if len({term for term in terms if " " not in term}) < WORDS_MIN:
        return {}
    query = weigh(session, {(TEXT, term): (1.0, term) for term in terms})
    known = query.known()
    rarest = known.ids[np.argsort(known.held, kind="stable")].tolist()
    read = affordable(rarest, query.frequencies(), POSTINGS_MAX)
    whole = float(query.weights[query.held == 0].sum() + known.weights[np.isin(known.ids, read)].sum())
    if whole < wording.nats:
        return {}
    held = gains_of_holders(
        find_postings(session, read), known.ids, known.weights, least=round(wording.share * whole, 6)
    )
    promising = [key for key in held if key[0] in repo_ids and key not in exclude]
    promising.sort(key=lambda key: (-held[key], -key[1]))
    weights = dict(zip(query.texts, query.weights.tolist(), strict=True))
    anchor = _rarest_word(known)
    found: dict[Key, float] = {}
    for repo_id, numbers in numbers_by_repository(promising[:READ_MAX]).items():
        for number, text in find_texts(session, repo_id, numbers).items():
            share = _share_of_passage(text.lower(), wording, anchor, weights)
            if share >= wording.share and share * whole >= wording.nats:
                found[repo_id, number] = share
    return found


def _rarest_word(known: Query) -> str:
    """Return the single word with the lowest document frequency."""
    held = {
        text: count for text, count in zip(known.texts, known.held.tolist(), strict=True) if " " not in text
    }
    return min(held, key=lambda text: (held[text], text), default="")


def _share_of_passage(text: str, wording: _Wording, anchor: str, weights: Mapping[str, float]) -> float:
    """Return the best coverage of the wording by one passage of a lower-case text."""
    if not anchor:
        return 0.0
    whole = sum(weights.values())
    name = re.compile(wording.name) if wording.name else None
    around = len(wording.text) + PASSAGE_CHARS
    best, at = 0.0, text.find(anchor)
    for _ in range(PLACES_MAX):
        if at < 0 or best == whole:
            break
        passage = text[max(0, at - around) : at + around]
        if name is None or name.search(passage):
            best = max(best, sum(weights.get(term, 0.0) for term in set(grams_of([passage]))))
        at = text.find(anchor, at + around)
    return best / whole
