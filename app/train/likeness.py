"""Learns `app/match/weights.json` from logs whose right answers are known.

    python -m app.train.likeness --database sqlite:///triage.db QUERIES.jsonl…

A line of a query file: `{"query": log, "expected": [numbers], "exclude"?: [numbers], "weight"?: 1.0}`; a
query that expects nothing teaches what "unknown" looks like. First the order is learned (logistic
regression on differences between right and wrong candidates), then the probability (logistic regression
over all features of the first ten), then the bands: the lowest thresholds at which, on folds that were
not learned from, the first matches inside the band are right in 95 ("same") and 60 ("likely") of 100.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from app.extract.rootcause import read_errors
from app.match.candidates import Candidate, find_candidates
from app.match.likeness import (
    FEATURES,
    RANK_FEATURES,
    Weights,
    features_of,
    load_weights,
    rank_candidates,
    rank_features,
    rank_score,
)
from app.match.terms import terms_of, texts_of_log
from app.store.session import Store, open_store

SAME_PRECISION = 0.95
LIKELY_PRECISION = 0.60
SAME_LEAST = 0.90
LIKELY_LEAST = 0.50
"""A chance is not called `same` or `likely` below these, whatever the folds say."""
BAND_LEAST = 10
"""A band's precision is not judged on fewer queries."""
RELATED_FROM = 0.25
FLOOR = 0.004
FOLDS = 5
PER_QUERY = 10
RANK_C = 0.1
MAX_RIGHT, MAX_WRONG = 3, 20
"""Of a query's candidates, so many of each kind are compared."""


@dataclass(frozen=True, slots=True)
class Example:
    """A query's candidates and which of them are right."""

    candidates: tuple[Candidate, ...]
    right: tuple[bool, ...]
    weight: float


def read_examples(store: Store, files: Sequence[Path]) -> list[Example]:
    """Ask the store each query of the files."""
    examples = []
    for line in (line for file in files for line in file.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        lines, errors = read_errors(row["query"])
        with store.reading() as session:
            found = find_candidates(session, terms_of(texts_of_log(lines, errors), errors))
        excluded, expected = set(row.get("exclude", ())), set(row["expected"])
        kept = tuple(item for item in found if item.key[1] not in excluded)
        right = tuple(item.key[1] in expected for item in kept)
        examples.append(Example(kept, right, float(row.get("weight", 1.0))))
    return examples


def learn_rank(examples: Iterable[Example]) -> tuple[float, ...]:
    """Weights of the rank features: what sets a right candidate over a wrong one; none counts against."""
    rows, weights = [], []
    for example in examples:
        told = [rank_features(item) for item in example.candidates]
        good = [row for row, right in zip(told, example.right, strict=True) if right][:MAX_RIGHT]
        bad = [row for row, right in zip(told, example.right, strict=True) if not right][:MAX_WRONG]
        for one in good:
            for other in bad:
                rows.append(np.subtract(one, other))
                weights.append(example.weight / (len(good) * len(bad)))
    table = np.array(rows)
    spread = table.std(axis=0) + 1e-9
    model = LogisticRegression(fit_intercept=False, C=RANK_C, max_iter=2000)
    both = np.vstack([table, -table]) / spread
    model.fit(both, [1] * len(table) + [0] * len(table), sample_weight=[*weights, *weights])
    return tuple(np.maximum(model.coef_[0] / spread, 0.0).round(4).tolist())


def learn_probability(
    examples: Sequence[Example], rank: tuple[float, ...]
) -> tuple[tuple[float, ...], float]:
    """Coefficients of the features and the intercept."""
    rows, labels, weights = [], [], []
    for example in examples:
        for row, right in _rows(example, rank):
            rows.append(row)
            labels.append(right)
            weights.append(example.weight)
    table = np.array(rows)
    mean, spread = table.mean(axis=0), table.std(axis=0) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=5000)
    model.fit((table - mean) / spread, labels, sample_weight=weights)
    coefficients = model.coef_[0] / spread
    intercept = float(model.intercept_[0] - (coefficients * mean).sum())
    return tuple(coefficients.round(5).tolist()), round(intercept, 5)


def _rows(example: Example, rank: tuple[float, ...]) -> Iterable[tuple[tuple[float, ...], bool]]:
    order = sorted(
        zip(example.candidates, example.right, strict=True), key=lambda item: -rank_score(item[0], rank)
    )[:PER_QUERY]
    for position, (candidate, right) in enumerate(order):
        behind = rank_score(order[position + 1][0], rank) if position + 1 < len(order) else 0.0
        lead = rank_score(candidate, rank) - behind if position == 0 else 0.0
        yield features_of(candidate, lead), right


def first_matches(examples: Sequence[Example]) -> list[tuple[float, bool]]:
    """Probability and rightness of the first match of each query, learned on the other folds."""
    found: list[tuple[float, bool]] = []
    for learned, held in KFold(FOLDS, shuffle=True, random_state=1).split(examples):
        weights = fit([examples[i] for i in learned])
        for example in (examples[i] for i in held):
            ranked = rank_candidates(example.candidates, weights)
            right = {item.key for item, ok in zip(example.candidates, example.right, strict=True) if ok}
            if ranked:
                found.append((ranked[0].probability, ranked[0].candidate.key in right))
    return found


def fit(examples: Sequence[Example]) -> Weights:
    """Rank and probability; the bands are set afterwards."""
    rank = learn_rank(examples)
    coefficients, intercept = learn_probability(examples, rank)
    return Weights(rank, coefficients, intercept, 1.0, 1.0, 1.0, FLOOR, load_weights().prose)


def threshold(firsts: Sequence[tuple[float, bool]], precision: float, below: float = 1.1) -> float:
    """The lowest probability from which on, up to `below`, so many first matches are right."""
    ordered = sorted((item for item in firsts if item[0] < below), reverse=True)
    right, best = 0, below
    for count, (probability, is_right) in enumerate(ordered, 1):
        right += is_right
        if count >= BAND_LEAST and right / count >= precision:
            best = probability
    return round(best, 4)


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--database", required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "match" / "weights.json")
    parser.add_argument("queries", nargs="+", type=Path)
    asked = parser.parse_args()
    store = open_store(asked.database)
    examples = read_examples(store, asked.queries)
    firsts = first_matches(examples)
    weights = fit(examples)
    same = max(SAME_LEAST, threshold(firsts, SAME_PRECISION))
    likely = max(LIKELY_LEAST, threshold(firsts, LIKELY_PRECISION, below=same))
    data = {
        **json.loads(asked.out.read_text(encoding="utf-8")),
        "learned": datetime.now(UTC).date().isoformat(),
        "queries": len(examples),
        "rank": dict(zip(RANK_FEATURES, weights.rank, strict=True)),
        "coefficients": dict(zip(FEATURES, weights.coefficients, strict=True)),
        "intercept": weights.intercept,
        "same_from": same,
        "likely_from": likely,
        "related_from": RELATED_FROM,
        "floor": FLOOR,
    }
    asked.out.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    for name, start, end in (("same", same, 1.1), ("likely", likely, same)):
        inside = [right for chance, right in firsts if start <= chance < end]
        share = sum(inside) / max(1, len(inside))
        print(f"{name}: from {start}, {len(inside)} of {len(firsts)} queries, unseen folds right {share:.3f}")


if __name__ == "__main__":
    main()
