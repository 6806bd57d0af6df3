"""Learn `pair_words.json` and `pair_weights.json` of `app/match/pairs/` from stored issues and judged pairs.

    python -m app.train.pair_score --database sqlite:///triage.db PAIRS.jsonl… [--keep-words]

A line of a file of pairs: `{"a": number, "b": number, "label": "same_failure" | "related" | "unrelated"}`.
First the words: the document frequency of each. Then the weights: logistic regression with sign constraints,
as a few hundred pairs would otherwise overfit. Related pairs are negative examples with a low weight; so are
pairs that the search ranks low for each other ("strangers"), since judged pairs do not represent typical
candidates. Metrics and bands are cross-validated on judged pairs; pairs that share an issue, directly or
through others, are kept in one fold.
"""

import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold

from app.extract.facts import Facts
from app.extract.log.root_cause import read_errors
from app.extract.log.signature import mask
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from app.match.pairs.candidates import choose_seeds, find_neighbours
from app.match.pairs.features import (
    MAX_TEXT_CHARS,
    PairFeatures,
    build_features,
    grams_of,
    load_word_weights,
    message_key,
    names_of,
    own_text,
    stem,
    words_of,
)
from app.match.pairs.one_failure import is_one_failure
from app.match.pairs.score import AGAINST, PAIR_FEATURES, pair_features
from app.match.search.terms import bare_title, line_texts, terms_of
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import find_issues, find_repository, numbers_of
from app.store.records import IssueRecord
from app.store.session import Store, open_store
from app.train.shared import fit_signed, make_parser, read_rows, write_json

SAME, RELATED, UNRELATED = 2, 1, 0
LABELS = {"same_failure": SAME, "related": RELATED, "unrelated": UNRELATED}
RELATED_WEIGHT = 0.3
PENALTY = 40.0
STRANGERS, STRANGERS_WEIGHT, STRANGERS_FROM = 500, 20.0, 12
"""Number of issues sampled, total weight of their pairs, and the first rank from which a pair is drawn."""
FOLDS, REPEATS = 5, 20
WORD_LEAST = 20
"""Words with a lower document frequency all get the same weight."""
UNSEEN = 3.5
MESSAGE_LEAST = 6
BATCH = 500
ALL = 10_000_000
FALSE_SAME, FALSE_LIKELY, FALSE_RELATED = 0.0, 0.03, 0.14
"""Maximum false positive rates of each band or better, on held-out folds. Issues that name each other are
linked as well, so that the last rate is below the accepted share of wrong links."""

HERE = Path(__file__).parents[1] / "match" / "pairs"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Judged pairs: features, whether both name one failure, labels, and cross-validation groups."""

    table: np.ndarray
    sharing: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    numbers: frozenset[int]


def learn_words(store: Store, repo: str) -> dict[str, Any]:
    """Compute word weights from all stored issues."""
    grams, words, names, messages = (Counter[str]() for _ in range(4))
    total = 0
    for issue, facts in _issues(store, repo):
        total += 1
        title = bare_title(issue.title)
        message = facts.error.message if facts.error else ""
        text = f"{title} {issue.body[:MAX_TEXT_CHARS]}"
        grams.update({*grams_of(words_of(title)), *grams_of(words_of(mask(message)))})
        words.update({stem(word) for word in words_of(text)})
        names.update(names_of(text))
        messages[message_key(message)] += 1
    return {
        "learned": datetime.now(UTC).date().isoformat(),
        "issues": total,
        "top": round(math.log((total + 1) / (UNSEEN + 0.5)), 3),
        "grams": _levels(grams, total),
        "words": _levels(words, total),
        "names": _levels(names, total),
        "common_messages": {
            key: count for key, count in sorted(messages.items()) if key and count >= MESSAGE_LEAST
        },
    }


def _levels(counts: Mapping[str, int], total: int) -> dict[str, str]:
    """Group words by their weight, rounded to steps of 0.5."""
    levels: dict[float, list[str]] = {}
    for term, count in counts.items():
        if count >= WORD_LEAST:
            levels.setdefault(round(2 * math.log((total + 1) / (count + 0.5))) / 2, []).append(term)
    return {
        f"{level:g}": " ".join(sorted(term.replace(" ", "+") for term in levels[level]))
        for level in sorted(levels)
    }


def _issues(
    store: Store, repo: str, numbers: Sequence[int] | None = None
) -> Iterator[tuple[IssueRecord, Facts]]:
    """Yield the stored issues with facts (optionally only these numbers), without pull requests."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        asked = numbers_of(session, repo_id, limit=ALL) if numbers is None else numbers
    for start in range(0, len(asked), BATCH):
        part = asked[start : start + BATCH]
        with store.reading() as session:
            facts = find_facts_without_evidence(session, repo_id, part)
            found = find_issues(session, repo_id, part)
        yield from ((i, facts[i.number]) for i in found if i.number in facts and not i.is_pull_request)


def read_pairs(store: Store, repo: str, files: Sequence[Path]) -> Pairs:
    """Compute the features of the judged pairs; pairs with an issue that is not stored are left out."""
    rows = list(read_rows(files))
    numbers = sorted({row[end] for row in rows for end in ("a", "b")})
    features = _features(store, repo, numbers)
    rows = [row for row in rows if row["a"] in features and row["b"] in features]
    leader: dict[int, int] = {}

    def lead(number: int) -> int:
        while leader.setdefault(number, number) != number:
            number = leader[number]
        return number

    for row in rows:
        leader[lead(row["a"])] = lead(row["b"])
    return Pairs(
        np.array([pair_features(features[row["a"]], features[row["b"]]) for row in rows]),
        np.array([is_one_failure(features[row["a"]], features[row["b"]]) for row in rows]),
        np.array([LABELS[row["label"]] for row in rows]),
        np.array([lead(row["a"]) for row in rows]),
        frozenset(numbers),
    )


def read_strangers(store: Store, repo: str, judged: frozenset[int]) -> np.ndarray:
    """Compute the features of pairs that the search ranks low."""
    rng = random.Random(7)
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        stored = [n for n in numbers_of(session, repo_id, limit=ALL) if n not in judged]
        drawn: list[list[int]] = []
        for issue in find_issues(session, repo_id, rng.sample(stored, min(STRANGERS, len(stored)))):
            lines, errors = read_errors(issue.body)
            terms = terms_of([issue.title, *line_texts(lines)], errors)
            asked = {issue.number: choose_seeds(issue.title, terms)}
            found = find_neighbours(session, repo_id, asked)[issue.number].here[STRANGERS_FROM:]
            drawn += [[issue.number, rng.choice(found)[1]]] if found else []
    features = _features(store, repo, sorted({number for pair in drawn for number in pair}))
    rows = [pair_features(features[a], features[b]) for a, b in drawn if a in features and b in features]
    return np.array(rows).reshape(-1, len(PAIR_FEATURES))


def _features(store: Store, repo: str, numbers: Sequence[int]) -> dict[int, PairFeatures]:
    return {
        issue.number: build_features(
            issue.title,
            own_text(read_document(IssueText(0, issue.title, issue.body))),
            facts,
            issue.created_at,
        )
        for issue, facts in _issues(store, repo, numbers)
    }


def fit(table: np.ndarray, labels: np.ndarray, strangers: np.ndarray) -> tuple[np.ndarray, float]:
    """Learn sign-constrained coefficients and the intercept."""
    signs = np.array([-1.0 if name in AGAINST else 1.0 for name in PAIR_FEATURES])
    rows = np.vstack([table, strangers])
    wanted = np.concatenate([labels == SAME, np.zeros(len(strangers), dtype=bool)])
    judged = np.where(labels == RELATED, RELATED_WEIGHT, 1.0)
    drawn = np.full(len(strangers), STRANGERS_WEIGHT / max(1, len(strangers)))
    weights = np.concatenate([judged, drawn])
    return fit_signed(rows, wanted, weights, signs, PENALTY, scaled_by=table)


def held_out(pairs: Pairs, strangers: np.ndarray, repeats: int = REPEATS) -> np.ndarray:
    """Return the logit of each pair on held-out folds, one row for each repeat."""
    runs = np.zeros((repeats, len(pairs.labels)))
    for seed, scores in enumerate(runs):
        folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
        for learned, held in folds.split(pairs.table, pairs.labels, pairs.groups):
            coefficients, intercept = fit(pairs.table[learned], pairs.labels[learned], strangers)
            scores[held] = pairs.table[held] @ coefficients + intercept
    return runs


def threshold(unlike: np.ndarray, share: float) -> float:
    """Return the threshold above which at most this share of the unlike pairs of all runs lies."""
    ordered = np.sort(unlike.ravel())[::-1]
    value = ordered[min(int(share * len(ordered)), len(ordered) - 1)]
    return round(float(1 / (1 + np.exp(-value))) + 5e-4, 3)


def figures(
    runs: np.ndarray, firm: np.ndarray, labels: np.ndarray, bands: Sequence[float]
) -> dict[str, float]:
    """Compute metrics on held-out folds; `firm`: the logits, -inf for pairs that do not name one failure."""
    areas = [roc_auc_score(labels[labels != RELATED] == SAME, scores[labels != RELATED]) for scores in runs]
    _, likely, related = bands

    def share(label: int, start: float) -> float:
        scores = (runs if start == related else firm)[:, labels == label]
        return round(float((1 / (1 + np.exp(-scores)) >= start).mean()), 3)

    return {
        "area": round(float(np.mean(areas)), 3),
        "area_deviation": round(float(np.std(areas)), 3),
        "same_as_same": share(SAME, likely),
        "unlike_as_same": share(UNRELATED, likely),
        "same_at_all": share(SAME, related),
        "related_at_all": share(RELATED, related),
        "unlike_at_all": share(UNRELATED, related),
    }


def main() -> None:
    parser = make_parser(__doc__, database=True)
    parser.add_argument("--repo", default="vllm-project/vllm")
    parser.add_argument("--keep-words", action="store_true", help="learn the curve only")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("pairs", nargs="+", type=Path)
    asked = parser.parse_args()
    store = open_store(asked.database)
    if not asked.keep_words:
        write_json(asked.out / "pair_words.json", learn_words(store, asked.repo), indent=1)
        load_word_weights.cache_clear()
    pairs = read_pairs(store, asked.repo, asked.pairs)
    strangers = read_strangers(store, asked.repo, pairs.numbers)
    runs = held_out(pairs, strangers)
    # Only pairs that name one failure can be above `related`.
    firm = np.where(pairs.sharing, runs, -np.inf)
    same, likely = (threshold(firm[:, pairs.labels == UNRELATED], s) for s in (FALSE_SAME, FALSE_LIKELY))
    bands = [same, likely, threshold(runs[:, pairs.labels == UNRELATED], FALSE_RELATED)]
    coefficients, intercept = fit(pairs.table, pairs.labels, strangers)
    learned: dict[str, Any] = {
        "coefficients": dict(zip(PAIR_FEATURES, coefficients.round(4).tolist(), strict=True)),
        "intercept": round(intercept, 4),
        **dict(zip(("same_from", "likely_from", "related_from"), bands, strict=True)),
    }
    # The version is a hash of weights and words: links made with another version are recomputed.
    made_from = json.dumps(learned, sort_keys=True).encode() + (asked.out / "pair_words.json").read_bytes()
    data = {
        "learned": datetime.now(UTC).date().isoformat(),
        "version": f"p1-{hashlib.sha256(made_from).hexdigest()[:12]}",
        "pairs": len(pairs.labels),
        "strangers": len(strangers),
        "held_out": figures(runs, firm, pairs.labels, bands),
        **learned,
    }
    write_json(asked.out / "pair_weights.json", data)
    print(json.dumps(data, indent=2))


if __name__ == "__main__":
    main()
