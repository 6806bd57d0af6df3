"""Learns `app/match/search/weights.json` from logs whose right answers are known.

    python -m app.train.log_ranking --database sqlite:///triage.db QUERIES.jsonl…

A line of a query file: `{"query": log, "expected": [numbers], "exclude"?: [numbers], "weight"?: 1.0,
"group"?: name}`; a query that expects nothing teaches what "unknown" looks like, and so does a log of a known
failure whose issues are excluded. First the order is learned (logistic regression on differences between
right and wrong candidates), then the chance (logistic regression over the first three), then the bands: the
lowest thresholds at which, on folds that were not learned from, the first matches inside the band are right
in 97 ("same") and 60 ("likely") of 100 and few false ones get into it. What is claimed is decided by queries
of weight 1 alone, the logs as users send them; others only help to learn. All queries of a group (of
one issue, where none is named) are in one fold and count as one, and nothing is learned from another with the
same answer: logs of several releases show one failure, and a failure that was learned from is no unseen one.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from app.extract.reader import LogReading, read_log
from app.match.search.agreement import UNKNOWN, Agreement, find_agreements
from app.match.search.log_query import LogQuery, ask_log
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
from app.train.inputs import make_parser, read_rows, write_json

SAME_PRECISION = 0.97
LIKELY_PRECISION = 0.60
SAME_FALSE, LIKELY_FALSE = 0.005, 0.007
"""Shares of the failures of `FULL` weight that may be falsely `same`, and falsely one of the two: a third of
what logs that nothing was learned from may show. Some of them are right though nobody noted it, so none would
be too strict."""
FULL = 1.0
"""The weight of a whole log, or a paste, as a user sends it."""
BAND_LEAST = 10
"""A band's precision is not judged on fewer failures."""
RELATED_FALSE = 0.08
"""The same for an answer that is not `unknown`."""
FLOOR = 0.001
FOLDS = 5
ORDER_C, CHANCE_C = 0.2, 0.1
MAX_RIGHT = 3
"""Of a query's right candidates, so many are compared with all wrong ones."""
LEARNED_FIRST = 3
"""The chance is learned from so many first matches of each query."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query's candidates, which of them are right, and how the facts of each agree with the query's.

    `group` is what all queries of one failure have in common.
    """

    candidates: tuple[Candidate, ...]
    right: frozenset[Key]
    weight: float
    agreements: Mapping[Key, Agreement]
    group: str
    asked: LogQuery

    @property
    def is_known(self) -> bool:
        """Whether anything is right; nothing is where the query expects nothing or it was not found."""
        return bool(self.right)


@dataclass(frozen=True, slots=True)
class FirstMatch:
    """A query's first match, judged by weights that were not learned from it; `group` names its failure."""

    group: str
    chance: float
    is_right: bool
    is_known: bool
    weight: float = 1.0
    is_weak: bool = False


def read_examples(store: Store, files: Sequence[Path]) -> list[LabelledQuery]:
    """Ask the store each query of the files."""
    examples: list[LabelledQuery] = []
    for row in read_rows(files):
        excluded, expected = frozenset(row.get("exclude", ())), frozenset(row["expected"])
        reading = read_log(row["query"])
        asked = ask_log(reading)
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
    """The weights of `ORDER_FEATURES`: what sets a right candidate over a wrong one; none counts against."""
    rows, weights = [], []
    for example in examples:
        rated = [(_ordered(example, item), item.key in example.right) for item in example.candidates]
        good = [row for row, right in rated if right][:MAX_RIGHT]
        bad = [row for row, right in rated if not right]
        for one in good:
            for other in bad:
                rows.append(np.subtract(one, other))
                weights.append(example.weight / (len(good) * len(bad)))
    table = np.array(rows)
    spread = table.std(axis=0) + 1e-9
    model = LogisticRegression(fit_intercept=False, C=ORDER_C, max_iter=2000)
    both = np.vstack([table, -table]) / spread
    _fit_for(model, both, [1] * len(table) + [0] * len(table), [*weights, *weights])
    return tuple((model.coef_[0] / spread).round(4).tolist())


def learn_chance(examples: Sequence[LabelledQuery], weights: RankWeights) -> tuple[tuple[float, ...], float]:
    """Coefficients of the features and the intercept, from the first matches in the order of `weights`."""
    rows, labels, importance = [], [], []
    for example in examples:
        for row, right in _rows(example, weights):
            rows.append(row)
            labels.append(right)
            importance.append(example.weight)
    signs = np.array([-1.0 if name in AGAINST else 1.0 for name in FEATURES])
    table = np.array(rows) * signs
    mean, spread = table.mean(axis=0), table.std(axis=0) + 1e-9
    model = LogisticRegression(C=CHANCE_C, max_iter=5000)
    _fit_for(model, (table - mean) / spread, labels, importance)
    coefficients = model.coef_[0] / spread
    intercept = float(model.intercept_[0] - (coefficients * mean).sum())
    return tuple((coefficients * signs).round(5).tolist()), round(intercept, 5)


def _fit_for(
    model: LogisticRegression, table: np.ndarray, labels: Sequence[int], importance: Sequence[float]
) -> None:
    """Fit so that each column counts for a match: what a few logs teach the wrong way round is left out."""
    used = np.ones(table.shape[1], dtype=bool)
    while True:
        model.fit(table * used, labels, sample_weight=importance)
        if model.coef_[0].min() >= 0:
            return
        used[model.coef_[0].argmin()] = False


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
    """The order and the chance; the bands are set afterwards."""
    order = learn_order(examples)
    unset = replace(load_weights(), order=order, same_from=1.0, likely_from=1.0, floor=FLOOR)
    coefficients, intercept = learn_chance(examples, unset)
    return replace(unset, coefficients=coefficients, intercept=intercept)


def first_matches(examples: Sequence[LabelledQuery]) -> list[FirstMatch]:
    """The first match of each query, judged by what the other folds teach."""
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
    """The lowest chance from which on, up to `below`, so many first matches, by weight, are right."""
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
    """The lowest chance from which on at most this share of all, by weight, is a false first match."""
    wrong = sorted((item for item in firsts if not item.is_right), key=lambda item: -item.chance)
    left = share * sum(item.weight for item in firsts)
    for item in wrong:
        left -= item.weight
        if left < 0:
            return round(item.chance + 0.0001, 4)
    return 0.0


def bands(firsts: Sequence[FirstMatch]) -> dict[str, float]:
    """Where each band begins."""
    full = [item for item in firsts if item.weight >= FULL]
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
    """Learn, print what the bands are worth on unseen folds, write."""
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
