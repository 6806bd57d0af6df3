"""Which stored issues hold an error's message, whatever else they report: a known kind of error.

In: the message of a log's cause. Out: the issues whose text holds most of it. What the message is
about (a name in quotes, an option) is left out, unless the name alone says what is wrong, or too little is
found; and so are words of a language or a system that name no kind of failure by themselves. Thresholds are
set on whole real logs (`tests/benchmarks/common_errors.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
from sqlalchemy.orm import Session

from app.extract.rules.rules import load_rule_set
from app.match.search.bm25 import affordable, gains_of_holders, weigh
from app.match.search.log_query import own_words
from app.match.search.terms import TEXT
from app.store.derived.search_index import Key, find_postings

SHARE_MIN = 0.65
"""The share of the message's information that an issue holds at least."""
NATS_MIN, WORDS_MIN = 15.0, 3
"""A shorter or more common message names no kind of error."""
OPENING_SHARE_MIN, OPENING_NATS_MIN = 0.9, 20.0
"""The same for the message's opening alone: what follows a colon is often one machine's."""
NAMED_SHARE_MIN = 0.8
"""The same for the message with the names in it."""
REPORTS_MIN = 2
POSTINGS_MAX = 30_000
_NAMES_KIND = "common.system"
"""Of the messages that unlike faults share those that still name one failure: a taken port, a full disk."""
_OPENING = re.compile(r": |\. |; ")
_NAMELESS = frozenset(
    f"common.{name}"
    for name in (
        "attribute",
        "conversion",
        "errno",
        "http",
        "index",
        "key",
        "module",
        "parser",
        "signature",
        "tensor",
        "validation",
    )
)


def find_holders(
    session: Session,
    message: str,
    names: Collection[str],
    repo_ids: Sequence[int],
    *,
    exclude: Collection[Key] = frozenset(),
) -> dict[Key, float]:
    """The issues that hold a message, each with the share that it holds; empty where too few do.

    Args:
        names: words by which the message says what it is about.
        exclude: issues that are no answer.
    """
    met = {rule.id for rule in load_rule_set("common_errors").meeting(message)}
    if _NAMES_KIND not in met and met & _NAMELESS:
        return {}
    opening, *rest = _OPENING.split(message, maxsplit=1)
    unnamed = [(message, names, SHARE_MIN, NATS_MIN)]
    if rest:
        unnamed.append((opening, names, OPENING_SHARE_MIN, OPENING_NATS_MIN))
    if load_rule_set("named_errors").meeting(message):
        unnamed = []
    for text, left_out, share, nats in (*unnamed, (message, (), NAMED_SHARE_MIN, NATS_MIN)):
        found = _holding(session, text, left_out, share, nats)
        kept = {key: held for key, held in found.items() if key[0] in repo_ids and key not in exclude}
        if len(kept) >= REPORTS_MIN:
            return kept
    return {}


def _holding(
    session: Session, text: str, names: Collection[str], share_min: float, nats_min: float
) -> dict[Key, float]:
    terms = [term for term in own_words(text) if not set(names) & set(term.split())]
    if len({term for term in terms if " " not in term}) < WORDS_MIN:
        return {}
    query = weigh(session, {(TEXT, term): (1.0, term) for term in terms})
    known = query.known()
    rarest = known.ids[np.argsort(known.held, kind="stable")].tolist()
    read = affordable(rarest, query.frequencies(), POSTINGS_MAX)
    whole = float(query.weights[query.held == 0].sum() + known.weights[np.isin(known.ids, read)].sum())
    if whole < nats_min:
        return {}
    held = gains_of_holders(
        find_postings(session, read), known.ids, known.weights, least=round(share_min * whole, 6)
    )
    return {key: nats / whole for key, nats in held.items()}
