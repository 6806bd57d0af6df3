"""Learn `app/match/search/weights.json` from labelled logs.

    python -m app.train.log_ranking --database sqlite:///triage.db QUERIES.jsonl…

A line of a query file: `{"query": log, "expected": [numbers], "exclude"?: [numbers], "weight"?: 1.0,
"group"?: name}`. Queries without expected issues, and known failures with their issues excluded, are negative
examples. Three steps: the order (pairwise logistic regression on right minus wrong candidates); the chance
(logistic regression over the first three); the bands, the lowest thresholds at which the first matches on
held-out folds reach a precision of 97 % ("same") and 60 % ("likely") with few false positives. Only queries
of weight 1, logs as users send them, decide the bands. Queries of a group (default: of an issue) are kept in
one fold and together count as one; training queries that share an answer with the held-out fold are dropped,
so that held-out failures are really unseen.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupKFold

from app.extract.reader import LogReading, read_log
from app.match.search.agreement import UNKNOWN, Agreement, find_agreements
from app.match.search.log_query import LogQuery, make_log_query
from app.match.search.log_search import Candidate, find_candidates
from app.match.search.ranking import (
    AGAINST,
    FEATURES,
    ORDER_FEATURES,
    RankWeights,
    Scored,
    features_of,
    is_weak,
    load_weights,
    order_features,
    rank_candidates,
    weighted,
)
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.search_index import Key
from app.store.session import Store, open_store
from app.train.shared import fit_signed, make_parser, read_rows, write_json

SAME_PRECISION = 0.97
LIKELY_PRECISION = 0.60
SAME_FALSE, LIKELY_FALSE = 0.005, 0.007
"""Maximum shares of failures of `FULL_WEIGHT` that are falsely `same`, and falsely `same` or `likely`: a
third of what is accepted on unseen logs. Zero is too strict, as some matches are right but not labelled."""
FULL_WEIGHT = 1.0
"""The weight of a complete log, or a paste, as a user sends it."""
BAND_LEAST = 10
"""Minimum weight of failures in a band for its precision to be judged."""
RELATED_FALSE = 0.08
"""Maximum share of false first matches in any band."""
FLOOR = 0.001
FOLDS = 5
ORDER_C, CHANCE_C = 0.2, 0.1
MAX_RIGHT = 3
"""Maximum number of right candidates of a query that are paired with all wrong ones."""
LEARNED_FIRST = 3
"""Number of first matches of each query from which the chance is learned."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query's candidates, the right ones among them, and the agreement of facts for each.

    `group` is the key shared by all queries of one failure.
    """

    candidates: tuple[Candidate, ...]
    right: frozenset[Key]
    weight: float
    agreements: Mapping[Key, Agreement]
    group: str
    asked: LogQuery

    @property
    def is_known(self) -> bool:
        """True if a right candidate was found; False also if none is expected."""
        return bool(self.right)


@dataclass(frozen=True, slots=True)
class FirstMatch:
    """A query's first match under weights not learned from it; `group` identifies its failure."""

    group: str
    chance: float
    is_right: bool
    is_known: bool
    weight: float = 1.0
    is_weak: bool = False


def read_examples(store: Store, files: Sequence[Path]) -> list[LabelledQuery]:
    examples: list[LabelledQuery] = []
    for row in read_rows(files):
        excluded, expected = frozenset(row.get("exclude", ())), frozenset(row["expected"])
        reading = read_log(row["query"])
        asked = make_log_query(reading)
        with store.reading() as session:
            found = find_candidates(session, asked, exclude=excluded)
        agreements = _agreements(store, reading, [item.key for item in found])
        group = str(row.get("group") or min(expected | excluded, default=-len(examples) - 1))
        right = frozenset(item.key for item in found if item.key[1] in expected)
        examples.append(
            LabelledQuery(
                tuple(found),
                right,
                float(row.get("weight", 1.0)),
                agreements,
                group,
                asked,
            )
        )
    return examples


def _agreements(store: Store, reading: LogReading, keys: Sequence[Key]) -> dict[Key, Agreement]:
    found: dict[Key, Agreement] = {}
    for repo_id in {key[0] for key in keys}:
        mine = [number for repo, number in keys if repo == repo_id]
        with store.reading() as session:
            facts = find_facts_without_evidence(session, repo_id, mine)
            known = {(repo_id, number): own for number, own in facts.items()}
            found |= find_agreements(session, reading, known)
    return found


def learn_order(examples: Iterable[LabelledQuery]) -> tuple[float, ...]:
    """Learn the weights of `ORDER_FEATURES`, all >= 0, from pairs of right and wrong candidates."""
    rows, weights = [], []
    for example in examples:
        rated = [(_ordered(example, item), item.key in example.right) for item in example.candidates]
        good = [row for row, right in rated if right][:MAX_RIGHT]
        bad = [row for row, right in rated if not right]
        for one in good:
            for other in bad:
                rows.append(np.subtract(one, other))
                weights.append(example.weight / (len(good) * len(bad)))
    # Each pair in both directions, so that the intercept is 0.
    table = np.array(rows)
    both, right = np.vstack([table, -table]), np.repeat([True, False], len(table))
    signs = np.ones(table.shape[1])
    coefficients, _ = fit_signed(both, right, [*weights, *weights], signs, 1 / ORDER_C, scaled_by=table)
    return tuple(coefficients.round(4).tolist())


def learn_chance(examples: Sequence[LabelledQuery], weights: RankWeights) -> tuple[tuple[float, ...], float]:
    """Learn coefficients and intercept from the first matches in the order of `weights`."""
    rows, labels, importance = [], [], []
    for example in examples:
        for row, right in _rows(example, weights):
            rows.append(row)
            labels.append(right)
            importance.append(example.weight)
    signs = np.array([-1.0 if name in AGAINST else 1.0 for name in FEATURES])
    coefficients, intercept = fit_signed(np.array(rows), np.array(labels), importance, signs, 1 / CHANCE_C)
    return tuple(coefficients.round(5).tolist()), round(intercept, 5)


def _rows(example: LabelledQuery, weights: RankWeights) -> Iterable[tuple[tuple[float, ...], bool]]:
    ranked = [item.candidate for item in _ranked(example, weights)]
    sums = [weighted(_ordered(example, item), weights.order) for item in ranked[:2]]
    for position, candidate in enumerate(ranked[:LEARNED_FIRST]):
        lead = sums[0] - sum(sums[1:]) if position == 0 else 0.0
        agreement = example.agreements.get(candidate.key, UNKNOWN)
        features = features_of(candidate, agreement, lead, is_common=example.asked.is_common)
        yield features, candidate.key in example.right


def _ranked(example: LabelledQuery, weights: RankWeights) -> list[Scored]:
    return rank_candidates(example.candidates, example.agreements, example.asked, weights)


def _ordered(example: LabelledQuery, item: Candidate) -> tuple[float, ...]:
    return order_features(item, example.agreements.get(item.key, UNKNOWN))


def _is_weak(example: LabelledQuery, item: Candidate) -> bool:
    agreement = example.agreements.get(item.key, UNKNOWN)
    return is_weak(item, agreement, example.asked)


def fit(examples: Sequence[LabelledQuery]) -> RankWeights:
    """Learn order and chance; the bands are set afterwards."""
    order = learn_order(examples)
    unset = replace(load_weights(), order=order, same_from=1.0, likely_from=1.0, floor=FLOOR)
    coefficients, intercept = learn_chance(examples, unset)
    return replace(unset, coefficients=coefficients, intercept=intercept)


def first_matches(examples: Sequence[LabelledQuery]) -> list[FirstMatch]:
    """Return the first match of each query under weights learned from the other folds."""
    found: list[FirstMatch] = []
    groups = [example.group for example in examples]
    for learned, held in GroupKFold(FOLDS).split(examples, groups=groups):
        answers = frozenset().union(*(examples[i].right for i in held))
        weights = fit([examples[i] for i in learned if not examples[i].right & answers])
        for example in (examples[i] for i in held):
            ranked = _ranked(example, weights)
            best = ranked[0] if ranked else None
            is_right = best is not None and best.candidate.key in example.right
            chance = best.probability if best else 0.0
            weak = best is not None and _is_weak(example, best.candidate)
            found.append(FirstMatch(example.group, chance, is_right, example.is_known, example.weight, weak))
    return found


def threshold(firsts: Sequence[FirstMatch], precision: float, below: float = 1.1) -> float:
    """Return the lowest threshold with this weighted precision of the first matches below `below`."""
    ordered = sorted((item for item in firsts if item.chance < below), key=lambda item: -item.chance)
    seen = right = 0.0
    best = below
    for item in ordered:
        seen += item.weight
        right += item.weight * item.is_right
        if seen >= BAND_LEAST and right / seen >= precision:
            best = item.chance
    return round(best, 4)


def above_all_but(firsts: Sequence[FirstMatch], share: float) -> float:
    """Return the lowest threshold with at most this weighted share of false first matches."""
    wrong = sorted((item for item in firsts if not item.is_right), key=lambda item: -item.chance)
    left = share * sum(item.weight for item in firsts)
    for item in wrong:
        left -= item.weight
        if left < 0:
            return round(item.chance + 0.0001, 4)
    return 0.0


def bands(firsts: Sequence[FirstMatch]) -> dict[str, float]:
    full = [item for item in firsts if item.weight >= FULL_WEIGHT]
    rows = Counter(item.group for item in full)
    firm = [
        replace(item, weight=1 / rows[item.group], chance=0.0 if item.is_weak else item.chance)
        for item in full
    ]
    same = max(threshold(firm, SAME_PRECISION), above_all_but(firm, SAME_FALSE))
    likely = max(threshold(firm, LIKELY_PRECISION, same), above_all_but(firm, LIKELY_FALSE))
    related = min(likely, above_all_but(firsts, RELATED_FALSE))
    return {"same_from": same, "likely_from": min(likely, same), "related_from": related}


def main() -> None:
    """Learn, print the precision of the bands on held-out folds, write the file."""
    parser = make_parser(__doc__, database=True)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parents[1] / "match" / "search" / "weights.json"
    )
    parser.add_argument("queries", nargs="+", type=Path)
    asked = parser.parse_args()
    examples = read_examples(open_store(asked.database), asked.queries)
    firsts = first_matches(examples)
    weights = fit(examples)
    limits = bands(firsts)
    data = {
        "learned": datetime.now(UTC).date().isoformat(),
        "queries": len(examples),
        "order": dict(zip(ORDER_FEATURES, weights.order, strict=True)),
        "coefficients": dict(zip(FEATURES, weights.coefficients, strict=True)),
        "intercept": weights.intercept,
        **limits,
        "floor": FLOOR,
        "prose": json.loads(asked.out.read_text(encoding="utf-8"))["prose"],
    }
    write_json(asked.out, data)
    starts = [("same", limits["same_from"], 1.1), ("likely", limits["likely_from"], limits["same_from"])]
    for name, start, end in [*starts, ("related", limits["related_from"], limits["likely_from"])]:
        inside = [item for item in firsts if start <= item.chance < end]
        right = sum(item.is_right for item in inside) / max(1, len(inside))
        known = sum(item.is_known for item in inside)
        print(f"{name}: from {start}, {known} known and {len(inside) - known} others, right {right:.3f}")


if __name__ == "__main__":
    main()
