"""Learns the `prose` part of `app/match/search/weights.json`: how sure an answer to a question can be.

    python -m app.train.question_ranking --database sqlite:///triage.db QUESTIONS.jsonl…

A line of a file: `{"text": question, "right": [numbers]}`; a line without `right` is a question about
something else; one that is `held_out`, or of several lines, is passed over. The order of answers is BM25
and not learned; only the chance is, from each question asked twice: as it is, and with its right answers
hidden.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from app.extract.reader import read_question
from app.match.search.question_search import find_answers
from app.match.search.ranking import PROSE_FEATURES, prose_features
from app.match.search.terms import question_heading
from app.store.session import Store, open_store

PER_QUESTION = 5
FOLDS = 5
LIKELY_FROM, RELATED_FROM = 0.4, 0.2
OUT = Path(__file__).parents[1] / "match" / "search" / "weights.json"

Row = tuple[tuple[float, ...], bool]


def rows_of(store: Store, questions: Sequence[Path]) -> list[list[Row]]:
    """For each question the features of its first answers and whether they are right."""
    asked = [json.loads(line) for file in questions for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        list(_answers(store, row["text"], frozenset(row.get("right", ()))))
        for row in asked
        if not row.get("held_out") and "\n" not in row["text"]
    ]


def _answers(store: Store, text: str, right: frozenset[int]) -> Iterator[Row]:
    heading = question_heading(text, read_question(text))
    for hidden in (frozenset[int](), right) if right else (right,):
        with store.reading() as session:
            ranked = find_answers(session, text, heading, exclude=hidden)
        for position, candidate in enumerate(ranked[:PER_QUESTION]):
            yield prose_features(ranked, position), candidate.key[1] in right


def learn(questions: Sequence[Sequence[Row]]) -> tuple[tuple[float, ...], float]:
    """Coefficients in the order of `PROSE_FEATURES`, and the intercept."""
    rows = [row for answers in questions for row in answers]
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit(np.array([features for features, _ in rows]), [right for _, right in rows])
    return tuple(model.coef_[0].round(4).tolist()), round(float(model.intercept_[0]), 4)


def unseen(questions: Sequence[Sequence[Row]]) -> Iterator[tuple[float, bool]]:
    """Chance and rightness of each question's first answers, learned from the other folds."""
    for fold in range(FOLDS):
        others = [answers for at, answers in enumerate(questions) if at % FOLDS != fold]
        coefficients, intercept = learn(others)
        for answers in questions[fold::FOLDS]:
            for features, right in answers[::PER_QUESTION]:
                value = intercept + float(np.dot(coefficients, features))
                yield 1 / (1 + float(np.exp(-value))), right


def main() -> None:
    """Learn, print what the bands are worth on unseen folds, write."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--database", required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("questions", nargs="+", type=Path)
    asked = parser.parse_args()
    questions = rows_of(open_store(asked.database), asked.questions)
    coefficients, intercept = learn(questions)
    data = json.loads(asked.out.read_text(encoding="utf-8"))
    data["prose"] = {
        "coefficients": dict(zip(PROSE_FEATURES, coefficients, strict=True)),
        "intercept": intercept,
        "likely_from": LIKELY_FROM,
        "related_from": RELATED_FROM,
    }
    asked.out.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    firsts = list(unseen(questions))
    for name, start in (("likely", LIKELY_FROM), ("related", RELATED_FROM)):
        inside = [right for chance, right in firsts if chance >= start]
        print(f"{name} or better: {len(inside)} of {len(firsts)}, unseen folds right {np.mean(inside):.3f}")


if __name__ == "__main__":
    main()
