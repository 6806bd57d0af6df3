"""Which stored issues hold an error's message, whatever else they report: a known kind of error.

In: the message of a log's cause. Out: the issues of which one passage holds most of it. The index
finds issues by their words, and these may stand anywhere; so the text of each is read, and the words count
only where they stand together and are not merely spoken of. What the message is about (a name in quotes, an
option) is left out, unless the name alone says what is wrong: then it must stand there as it is. Words of a
language or a system name no kind of failure by themselves, but do together with the frame that raised them.
Thresholds are set on whole real logs
(`tests/benchmarks/common_errors.py`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from app.extract.log.course import is_mention
from app.extract.rules.rules import load_rule_set
from app.match.search.bm25 import Query, affordable, gains_of_holders, weigh
from app.match.search.log_query import has_words, name_words, names_in, own_words, wrong_names
from app.match.search.terms import FRAME, TEXT, grams_of
from app.store.derived.search_index import Key, find_postings, numbers_by_repository, term_id
from app.store.github.issues import find_texts

SHARE_MIN = 0.65
"""The share of the message's information that a passage holds at least."""
NATS_MIN, WORDS_MIN = 17.0, 3
"""Information and words that it holds at least: less of them unlike messages share."""
NAME_NATS_MIN = 8.0
"""Enough where a name says all that is wrong."""
OPENING_SHARE_MIN = 0.9
"""The share of the message's opening alone: what follows a colon is often one machine's."""
NAMED_SHARE_MIN = 0.7
"""The share of the message with the names in it."""
REPORTS_MIN = 2
"""So many reports are a kind; of a name that says all that is wrong one is enough."""
NAMES_MAX = 4
"""Of options that a command does not know so many are looked for."""
POSTINGS_MAX = 30_000
READ_MAX = 200
"""Issues whose text is read, those that hold most of the words first."""
PLACES_MAX = 12
"""Passages of one text that are looked at."""
PASSAGE_CHARS = 60
"""A passage is so much longer than the message on either side."""
_NAMES_KIND = "common.system"
"""Of the messages that unlike faults share those that still name one failure: a taken port, a full disk."""
_ERRNO = "common.errno"
_OPENING = re.compile(r": |, (?=(?:please|try|consider)\b)|\. |; | \((?=(?:[^()]|\([^()]*\))*\)\W*$)")
"""Where a message's opening ends. A bracket in the middle of a sentence ends nothing."""
_OBJECT = re.compile(r"<[^<>]{1,80} at 0x[0-9a-f]+>")
_MODEL_CLASS = re.compile(r"\b[A-Z]\w*(?:For[A-Z]\w+|Model)\b")
"""A model's class, in quotes or not: what it lacks, others lack too."""
_NUMBER = re.compile(r"^\[?(?:Errno|WinError) -?\d+\]?:? *", re.IGNORECASE)
_NAME_PART = re.compile(r"[\w.-]+")
"""Of a name that its module follows there are three."""
_BETWEEN = r"\W*(?:--\S+(?: [^-\s]\S*)*\s+)*(?<![\w.-])"
"""Between these words and the name: quotes, and other options with their values."""
_NAMELESS = frozenset(
    f"common.{name}"
    for name in ("attribute", "conversion", "http", "index", "key", "module", "parser", "signature", "tensor")
)
_VALIDATION = "common.validation"


@dataclass(frozen=True, slots=True)
class _Wording:
    """What of a message is looked for: its words but for `left_out`, and `name`, a pattern.

    `at_frame`: only issues count that hold the frame that raised the error.
    """

    text: str
    share: float
    left_out: frozenset[str] = frozenset()
    name: str = ""
    nats: float = NATS_MIN
    reports: int = REPORTS_MIN
    at_frame: bool = False


def find_holders(
    session: Session,
    message: str,
    repo_ids: Sequence[int],
    *,
    exclude: Collection[Key] = frozenset(),
    likeliest: Key | None = None,
    frame: str | None = None,
) -> dict[Key, float]:
    """The issues that hold a message, each with the share that it holds; empty where too few do.

    Args:
        exclude: issues that are no answer.
        likeliest: the issue that is likest to report this failure; if it holds the message, and names the
            same, it alone is enough.
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
    """How a message may stand in a report, the strictest reading of it first."""
    if not has_words(message):
        return
    rules = load_rule_set("common_errors")
    met = {rule.id for rule in rules.meeting(message)}
    words, names = wrong_names(message)
    for name in names[:NAMES_MAX]:
        text = f"{words} {name}"
        parts = _NAME_PART.findall(name.lower())
        if len(parts) > 1 or not (met | {rule.id for rule in rules.meeting(text)}) & _NAMELESS:
            standing = r"\W+".join(map(re.escape, parts))
            standing = rf"{re.escape(words.lower())}{_BETWEEN}{standing}(?![\w-]|\.\w)"
            yield _Wording(text, SHARE_MIN, name=standing, nats=NAME_NATS_MIN, reports=1)
    if words:
        return
    if _NAMES_KIND in met:
        yield _Wording(_NUMBER.sub("", message), SHARE_MIN, reports=1)
        return
    if met & (_NAMELESS | {_VALIDATION}):
        yield _Wording(message, SHARE_MIN, nats=NAME_NATS_MIN, reports=1, at_frame=True)
        return
    message = _OBJECT.sub("", _without_system_words(message))
    left_out = frozenset([*name_words(message), *map(str.lower, _MODEL_CLASS.findall(message))])
    yield _Wording(message, SHARE_MIN, left_out)
    opening, *rest_of_it = _OPENING.split(message, maxsplit=1)
    if rest_of_it:
        yield _Wording(opening, OPENING_SHARE_MIN, left_out)
    yield _Wording(message, NAMED_SHARE_MIN)


def _without_system_words(message: str) -> str:
    """What a message tells before the system's words, which are its end or all of it."""
    rule = next(rule for rule in load_rule_set("common_errors").rules if rule.id == _ERRNO)
    match = rule.pattern.search(message)
    return message[: match.start()] if match is not None else message


def _holding(
    session: Session, wording: _Wording, repo_ids: Sequence[int], exclude: Collection[Key]
) -> dict[Key, float]:
    """The issues of which one passage holds the wording."""
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
    """The word, no pair, that fewest issues hold."""
    held = {
        text: count for text, count in zip(known.texts, known.held.tolist(), strict=True) if " " not in text
    }
    return min(held, key=lambda text: (held[text], text), default="")


def _share_of_passage(text: str, wording: _Wording, anchor: str, weights: Mapping[str, float]) -> float:
    """The most that one passage of a text, in small letters, holds of the wording's information."""
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
        if not _is_spoken_of(text[max(0, at - around) : at]) and (name is None or name.search(passage)):
            best = max(best, sum(weights.get(term, 0.0) for term in set(grams_of([passage]))))
        at = text.find(anchor, at + around)
    return best / whole


def _is_spoken_of(before: str) -> bool:
    """Whether advice or a warning only names the error, of which the last words may be in quotes."""
    return is_mention(before) or is_mention(before.rpartition("`")[0])
