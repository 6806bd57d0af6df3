"""How likely two failures are the same: a candidate's features, a probability, a band.

In: candidates with their shares of the query, and how far the facts of the first agree with the log's. Out:
`Scored` candidates, best first. The weights are data (`weights.json`), learned by `app.train.log_ranking`
from labelled logs and written with the date and the figures of the fit; nothing is fitted here.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from operator import mul
from typing import Any, Literal

from app.match.search.agreement import UNKNOWN, Agreement
from app.match.search.log_query import PARTS, LogQuery
from app.match.search.log_search import Candidate
from app.store.derived.search_index import Key

Band = Literal["same", "likely", "related"]

AGREEMENT_FEATURES = (
    "same_signature",
    "same_family",
    "same_architecture",
    "same_backend",
    "near_version",
    "same_message",
    "same_frame",
    "same_test",
)
"""What the facts of the log and of an issue say beside the words."""

ORDER_FEATURES = (*PARTS, "rare_words", "scarce_words", *AGREEMENT_FEATURES)
"""What puts candidates in order: of each part of the query the share that an issue holds, the shares of words
that few issues hold, and the facts, which count once they are known."""

REFINED = 10
"""So many of the first candidates are compared by their facts too, which must be read for that."""

FEATURES = (
    "specific",
    "specific_cause",
    "specific_long",
    "common_frames",
    "common_share",
    "everything",
    "rare_words",
    "lead",
    "same_signature",
    "other_names",
    "foreign_test",
)
"""The inputs of the chance. `specific`: the cause's message is none that unlike faults share, `common`:
it is; `cause`: the share of its words; `long`: the share above `MOST` of those words that any issue holds,
times what the shared ones weigh; `share`: of all that the log asks for, `everything`: the same above `MOST`;
`lead`: how far the first is ahead of the next; `other_names`: the share of the message's names that the issue
lacks; `foreign_test`: it reports a test. Few, since more of them fit the logs that were learned from better
and all others worse."""

AGAINST = frozenset({"other_names", "foreign_test"})
"""The features that count against a match; all others count for it, whatever a few logs teach."""

MOST = 0.7
ENOUGH = 0.6
"""The share of a message, words that no issue holds included, from which on the known words count in full."""
LONG_NATS = 100.0
"""The information of a message that is long and rare; one with more counts as `MOST_LENGTH` of it at most."""
MOST_LENGTH = 1.2
HALF = 0.5
"""Who holds less of a message, words that no issue holds included, holds another one."""
EVIDENCE_NATS = 60.0
"""A message of so much weight is evidence enough wherever an issue holds it."""
BESIDE_NATS = 40.0
"""What a log must hold beside a message that unlike faults share, at least, if an issue shall be `likely`."""
BACKED_FROM = 0.4
"""The share of title, code, frames or the whole log from which on a mentioned message is backed."""
WHOLE = 0.9
"""Who holds so much of a message holds it."""
OWN_WORDS = 0.5
"""From this share of a title or of the message that is an issue's own error on, the issue is about it."""
MOST_HOLDERS = 8
"""A refusal that more of the candidates hold is met by whoever uses the server that way."""
CHANCE_STEP = 0.0001
"""How far below a band a chance is held that may not reach it."""
LEAD_SCALE = 4.0
"""A lead counts as ln(1 + `LEAD_SCALE` * lead): the first steps weigh the most."""

PROSE_FEATURES = ("score", "heading_share", "lead")
"""The same for a question without a log: all that is shared, the share of the question's heading that is, and
how far one is ahead of the next, as a share of the first one's score."""


MEANING = "meaning"
"""Among a candidate's scores what an embedding model adds. It has a say in the order of answers to a
question, and none in the chance, which so means the same with any model."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its chance (0 to 1) of being the same failure, and the band that chance is in."""

    candidate: Candidate
    probability: float
    band: Band


@dataclass(frozen=True, slots=True)
class ProseWeights:
    """The chance of a match for a question in words: a logistic curve over `PROSE_FEATURES`.

    `meaning`: what a standard deviation of nearness in meaning counts in the order, in nats.
    """

    coefficients: tuple[float, ...]
    intercept: float
    likely_from: float
    related_from: float
    meaning: float


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Learned weights: a linear order over `ORDER_FEATURES`, then a logistic curve over `FEATURES`."""

    order: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    same_from: float
    likely_from: float
    related_from: float
    floor: float
    prose: ProseWeights


@lru_cache(maxsize=1)
def load_weights() -> RankWeights:
    """The weights this version was measured with."""
    data: dict[str, Any] = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    return RankWeights(
        tuple(data["order"][name] for name in ORDER_FEATURES),
        tuple(data["coefficients"][name] for name in FEATURES),
        data["intercept"],
        data["same_from"],
        data["likely_from"],
        data["related_from"],
        data["floor"],
        _prose_weights(data["prose"]),
    )


def _prose_weights(data: dict[str, Any]) -> ProseWeights:
    coefficients = tuple(data["coefficients"][name] for name in PROSE_FEATURES)
    return ProseWeights(
        coefficients, data["intercept"], data["likely_from"], data["related_from"], data["meaning"]
    )


def order_features(candidate: Candidate, agreement: Agreement = UNKNOWN) -> tuple[float, ...]:
    """The features in the order of `ORDER_FEATURES`, shares from 0 to 1, agreements from -1 to 1."""
    return (
        *(candidate.known_shares[part] for part in PARTS),
        candidate.rare,
        candidate.scarce,
        agreement.signature,
        agreement.family,
        agreement.architecture,
        agreement.backend,
        agreement.version,
        agreement.message,
        agreement.frame,
        agreement.test,
    )


def weighted(features: Sequence[float], weights: Sequence[float]) -> float:
    """The linear sum by which candidates are put in order."""
    total: float = sum(map(mul, weights, features))
    return total


def features_of(
    candidate: Candidate, agreement: Agreement, lead: float, *, is_common: bool
) -> tuple[float, ...]:
    """The features in the order of `FEATURES`.

    Args:
        lead: its linear sum less that of the next; 0 for all but the first.
        is_common: the cause's message says little by itself.
    """
    specific, common = (0.0, 1.0) if is_common else (1.0, 0.0)
    cause = candidate.shares["cause"]
    length = min(math.log1p(candidate.scores["cause"]) / math.log(LONG_NATS), MOST_LENGTH)
    return (
        specific,
        specific * cause,
        specific * _above_most(candidate.known_shares["cause"]) * min(1.0, cause / ENOUGH) * length,
        common * candidate.known_shares["frames"],
        common * candidate.share,
        _above_most(candidate.share),
        candidate.rare,
        math.log1p(LEAD_SCALE * max(lead, 0.0)),
        agreement.signature,
        specific * (1 - candidate.names),
        max(0.0, -agreement.test),
    )


def _above_most(share: float) -> float:
    """How far a share is above `MOST`, from 0 to 1."""
    return max(0.0, share - MOST) / (1 - MOST)


def order_candidates(candidates: Iterable[Candidate], weights: RankWeights | None = None) -> list[Candidate]:
    """Candidates by what they share of the query, best first; of equals the newest first."""
    used = weights or load_weights()
    newest = sorted(candidates, key=lambda item: (item.key[0], -item.key[1]))
    return sorted(newest, key=lambda item: -weighted(order_features(item), used.order))


def rank_candidates(
    candidates: Iterable[Candidate],
    agreements: Mapping[Key, Agreement],
    asked: LogQuery,
    weights: RankWeights | None = None,
) -> list[Scored]:
    """Candidates as matches, best first, with probability and band; a lower one is never more probable.

    Args:
        agreements: of the first `REFINED` in the order of `order_candidates`; one that is missing is unknown.
        asked: what the log asked.
    """
    used = weights or load_weights()
    ordered = order_candidates(candidates, used)
    is_usage = asked.is_refused and sum(map(_holds_message, ordered)) > MOST_HOLDERS
    first, rest = ordered[:REFINED], ordered[REFINED:]
    sums = {
        item.key: weighted(order_features(item, agreements.get(item.key, UNKNOWN)), used.order)
        for item in first
    }
    first.sort(key=lambda item: -sums[item.key])
    top = [sums[item.key] for item in first[:2]]
    lead = top[0] - sum(top[1:]) if top else 0.0
    if first:  # of a small base those are missing who would be near as well
        lead /= math.sqrt(1 + first[0].crowd)
    scored: list[Scored] = []
    ceiling = 1.0
    for candidate in (*first, *rest):
        agreement = agreements.get(candidate.key, UNKNOWN)
        features = features_of(candidate, agreement, 0.0 if scored else lead, is_common=asked.is_common)
        chance = min(ceiling, _logistic(features, used.coefficients, used.intercept))
        if is_usage or is_weak(candidate, agreement, asked):
            chance = min(chance, used.likely_from - CHANCE_STEP)
        scored.append(Scored(candidate, chance, band_of(chance, used)))
        ceiling = chance
    return scored


def is_weak(candidate: Candidate, agreement: Agreement, asked: LogQuery) -> bool:
    """Whether a candidate is never `likely`: one kind of evidence claims nothing.

    Of a message that unlike faults share most of the log must be shared too, and the log must hold more than
    the message; of a log without an error nearly all of it must be. Another failure is one that is about
    another thing, one that lacks a name which is all that is wrong, and one of which hardly half is held. Any
    other is short of evidence if the issue only mentions it; and the words by which a request is refused must
    be what the issue is about.
    """
    if agreement.names < 0 or (asked.is_named and candidate.names < 1):
        return True
    if asked.is_common:
        beside = sum(candidate.scores[part] for part in ("chain", "frames", "near", "context"))
        return candidate.share < (WHOLE if asked.is_empty else MOST) or beside < BESIDE_NATS
    if asked.is_refused:
        about = max(agreement.message, agreement.signature, candidate.shares["title"])
        return not _holds_message(candidate) or about < OWN_WORDS
    if candidate.shares["cause"] < HALF:
        return True
    return agreement.message <= 0 and agreement.signature <= 0 and not _is_backed(candidate)


def _holds_message(candidate: Candidate) -> bool:
    return candidate.shares["cause"] >= WHOLE


def _is_backed(candidate: Candidate) -> bool:
    """Whether a message is long, or title, code or frames are shared beside it."""
    beside = (candidate.share, *(candidate.shares[part] for part in ("title", "near", "frames")))
    return candidate.scores["cause"] >= EVIDENCE_NATS or max(beside) >= BACKED_FROM


def rank_prose(candidates: Sequence[Candidate], weights: RankWeights | None = None) -> list[Scored]:
    """Candidates for a question in words, by what they share of it; none is ever `same`."""
    used = (weights or load_weights()).prose
    ranked = sorted(candidates, key=lambda item: (-sum(item.scores.values()), item.key))
    scored: list[Scored] = []
    ceiling = 1.0
    for position, candidate in enumerate(ranked):
        chance = min(ceiling, _logistic(prose_features(ranked, position), used.coefficients, used.intercept))
        scored.append(Scored(candidate, chance, "likely" if chance >= used.likely_from else "related"))
        ceiling = chance
    return scored


def prose_features(ranked: Sequence[Candidate], position: int) -> tuple[float, ...]:
    """The features of a ranked candidate in the order of `PROSE_FEATURES`."""
    mine, best = _words(ranked[position]), _words(ranked[0])
    behind = _words(ranked[position + 1]) if position + 1 < len(ranked) else 0.0
    share = ranked[position].shares.get("title", 0.0)
    return math.log1p(mine), share, (mine - behind) / best if best else 0.0


def _words(candidate: Candidate) -> float:
    """What the words of a question weigh for a candidate."""
    return sum(value for name, value in candidate.scores.items() if name != MEANING)


def _logistic(features: Sequence[float], coefficients: Sequence[float], intercept: float) -> float:
    value = intercept + weighted(features, coefficients)
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, value))))


def band_of(probability: float, weights: RankWeights) -> Band:
    """Which band a probability is in."""
    if probability >= weights.same_from:
        return "same"
    return "likely" if probability >= weights.likely_from else "related"
