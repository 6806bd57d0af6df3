"""Learn `app/extract/remedies/remedy_weights.json`: which candidate changes people say helped.

    python -m app.train.remedy_score --issues ISSUES.jsonl… --gold GOLD.jsonl…

`--issues`: texts as GitHub sends them (`number`, `title`, `body`, `comments_data`). `--gold`: labelled issues
(`workarounds` with `action` and `outcome`), with all remedies labelled; the reviewed sentences of `labels/`
are added. Every candidate change is an example, positive if it means the labelled
change. Prints the scores of five-fold cross-validation by issue.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from app.extract.remedies.candidates import CandidateRemedy
from app.extract.remedies.changes import grammar
from app.extract.remedies.score import WEIGHTS_FILE, RemedyWeights, chance_of, features_of
from app.extract.remedies.sentences import candidates_of
from app.extract.text.blocks import read_document
from app.extract.text.document import CommentText, IssueText
from app.extract.text.sentences import is_request, read_sentences
from app.train.confidence import calibration_error
from app.train.shared import make_parser, read_rows, write_json

FOLDS = 5
STRENGTH = 0.5
"""Inverse regularisation strength (`C`); few examples need strong regularisation."""

RARE = 3
"""Minimum number of examples with a feature."""

PRECISION = 0.77
"""Target precision for single clauses. It is higher for the remedies of an issue, as those that comments
refute, or that failed elsewhere in it, are removed."""

LABELS = Path(__file__).parent / "labels" / "remedies.jsonl"
OWN_SENTENCES = LABELS.with_name("said.jsonl")
"""Synthetic sentences with rare phrasings, used for training but not for evaluation."""

OWN_EXPERIENCE = grammar("own")
HELPS = ("works", "partial")


@dataclass(frozen=True, slots=True)
class Example:
    """One candidate, whether it is right, and the clause and issue it belongs to."""

    candidate: CandidateRemedy
    right: bool
    number: int
    clause: tuple[int, str, int, int]


def same_change(one: str, other: str) -> bool:
    """True if two spans mean the same change: one contains the other, or they share most words."""
    a, b = (" ".join(text.lower().replace("`", "").split()) for text in (one, other))
    first, second = set(a.split()), set(b.split())
    if not first or not second:
        return False
    shared = len(first & second)
    if a in b or b in a:
        return shared / max(len(first), len(second)) >= 0.12
    return shared / min(len(first), len(second)) >= 0.8 and min(len(first), len(second)) >= 3


def read_examples(issues: Iterable[Path], golds: Iterable[Path]) -> list[Example]:
    """Return all candidates in labelled issues and labelled sentences."""
    texts = {row["number"]: row for row in read_rows(issues)}
    labelled = {row["number"]: row for row in read_rows(golds)}
    examples: list[Example] = []
    for number, gold in labelled.items():
        actions = [item["action"] for item in gold["workarounds"] if item["outcome"] in HELPS]
        examples += [_example(number, candidate, actions) for candidate in _candidates_in(texts[number])]
    spans: dict[int, list[dict[str, Any]]] = {}
    for reviewed in read_rows([LABELS]):
        if reviewed["number"] not in labelled and reviewed["number"] in texts:
            spans.setdefault(reviewed["number"], []).append(reviewed)
    for number, rows in spans.items():
        for candidate in _candidates_in(texts[number]):
            if row := _row_of(candidate, rows):
                text = texts[number][row["source"]]
                helps = row["verdict"] in HELPS and row["action_start"] is not None
                actions = [text[row["action_start"] : row["action_end"]]] if helps else []
                examples.append(_example(number, candidate, actions))
    return examples


def read_own_sentences(path: Path) -> list[Example]:
    """Return the candidates in synthetic sentences, whose numbers are negative."""
    examples: list[Example] = []
    for at, row in enumerate(read_rows([path]), start=1):
        text = {"number": at, "title": "", "body": row["said"]}
        examples += [_example(-at, candidate, row["helped"]) for candidate in _candidates_in(text)]
    return examples


def learn(examples: Sequence[Example]) -> RemedyWeights:
    found = [features_of(example.candidate) for example in examples]
    counter = CountVectorizer(analyzer=list, min_df=RARE, binary=True)
    table = counter.fit_transform(found).toarray().astype(float)
    model = LogisticRegression(C=STRENGTH, max_iter=5000)
    model.fit(table, [example.right for example in examples])
    weights = {
        name: round(float(w), 3)
        for name, w in zip(counter.get_feature_names_out(), model.coef_[0], strict=True)
    }
    return RemedyWeights(round(float(model.intercept_[0]), 3), weights, 0.5)


def judge_folds(examples: Sequence[Example], own: Sequence[Example] = ()) -> list[tuple[float, bool]]:
    """Cross-validate: chance and correctness of each clause's best candidate; `own` is in all folds."""
    groups = [example.number for example in examples]
    judged: list[tuple[float, bool]] = []
    for learned, held in GroupKFold(FOLDS, shuffle=True, random_state=1).split(groups, groups=groups):
        weights = learn([*(examples[i] for i in learned), *own])
        judged += best_of([examples[i] for i in held], weights)
    return judged


def best_of(examples: Sequence[Example], weights: RemedyWeights) -> list[tuple[float, bool]]:
    """Return chance and correctness of each clause's most likely candidate."""
    best: dict[tuple[int, str, int, int], tuple[float, bool]] = {}
    for example in examples:
        chance = chance_of(example.candidate, weights)
        if example.clause not in best or chance > best[example.clause][0]:
            best[example.clause] = (chance, example.right)
    return list(best.values())


def scores(judged: Sequence[tuple[float, bool]], threshold: float, total: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 at a threshold; `total` clauses contain a remedy."""
    likely = [right for chance, right in judged if chance >= threshold]
    precision, recall = sum(likely) / max(1, len(likely)), sum(likely) / max(1, total)
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def best_threshold(judged: Sequence[tuple[float, bool]], total: int) -> float:
    """Return the lowest threshold with at least the target `PRECISION`."""
    marks = [round(0.3 + 0.02 * step, 2) for step in range(31)]
    return next((mark for mark in marks if scores(judged, mark, total)[0] >= PRECISION), marks[-1])


def _candidates_in(row: dict[str, Any]) -> Iterator[CandidateRemedy]:
    comments = tuple(CommentText(item["body"], item.get("id")) for item in row.get("comments_data") or ())
    document = read_document(IssueText(row["number"], row["title"], row["body"] or "", comments=comments))
    if is_request(document):
        return
    previous = None
    for sentence in read_sentences(document):
        if not sentence.is_proposal or OWN_EXPERIENCE.search(sentence.text):
            yield from candidates_of(sentence, previous)
        previous = sentence


def _example(number: int, candidate: CandidateRemedy, actions: Sequence[str]) -> Example:
    change, sentence = candidate.change, candidate.sentence
    text = sentence.text[change.start : change.end]
    right = any(same_change(action, text) for action in actions)
    return Example(candidate, right, number, (number, sentence.source, sentence.start, candidate.clause))


def _row_of(candidate: CandidateRemedy, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    at = candidate.sentence.start + candidate.change.start
    return next(
        (
            row
            for row in rows
            if row["source"] == candidate.sentence.source and row["start"] <= at < row["end"]
        ),
        None,
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--issues", type=Path, nargs="+", required=True)
    parser.add_argument("--gold", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    asked = parser.parse_args()
    examples, own = read_examples(asked.issues, asked.gold), read_own_sentences(OWN_SENTENCES)
    total = len({example.clause for example in examples if example.right})
    judged = judge_folds(examples, own)
    threshold = best_threshold(judged, total)
    weights = learn([*examples, *own])
    figures = {
        "learned": datetime.now(UTC).date().isoformat(),
        "offers": len(examples),
        "clauses": len(judged),
        "remedies": total,
        "threshold": threshold,
        "scores": [round(value, 3) for value in scores(judged, threshold, total)],
        "calibration_error": round(calibration_error(judged), 3),
    }
    write_json(asked.out, {**figures, "intercept": weights.intercept, "weights": weights.weights}, indent=1)
    print(*(f"{name}: {value}" for name, value in figures.items()), sep="\n")


if __name__ == "__main__":
    main()
