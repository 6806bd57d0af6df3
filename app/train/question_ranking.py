"""Learn the `prose` part of `app/match/search/weights.json`: the chance that an answer is right.

    python -m app.train.question_ranking --database sqlite:///triage.db QUESTIONS.jsonl…

A line of a file: `{"text": question, "right": [numbers], "exclude": [numbers]}`; a line without `right` is a
question without an answer; questions that are `held_out` or have several lines are skipped. The order is BM25
and not learned. The chance is learned from each question asked twice: once normally, once with its right
answers hidden.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from app.extract.reader import read_question
from app.match.search.question_search import find_answers
from app.match.search.ranking import PROSE_FEATURES, prose_features
from app.match.search.terms import question_heading
from app.store.session import Store, open_store
from app.train.shared import make_parser, read_rows, write_json

PER_QUESTION = 5
FOLDS = 5
LIKELY_FROM, RELATED_FROM = 0.4, 0.2
OUT = Path(__file__).parents[1] / "match" / "search" / "weights.json"

Row = tuple[tuple[float, ...], bool]


def rows_of(store: Store, questions: Sequence[Path]) -> list[list[Row]]:
    """Return features and correctness of the first answers of each question."""
    return [
        list(_answers(store, row["text"], frozenset(row.get("right", ())))) for row in asked_rows(questions)
    ]


def _answers(store: Store, text: str, right: frozenset[int]) -> Iterator[Row]:
    heading = question_heading(text, read_question(text))
    for hidden in (frozenset[int](), right) if right else (right,):
        with store.reading() as session:
            ranked = find_answers(session, text, heading, exclude=hidden)
        for position, candidate in enumerate(ranked[:PER_QUESTION]):
            yield prose_features(ranked, position), candidate.key[1] in right


def asked_rows(files: Sequence[Path], *, held_out: bool = False) -> list[dict[str, Any]]:
    """Return the single-line questions that are held out, or those that are not."""
    return [
        row for row in read_rows(files) if bool(row.get("held_out")) is held_out and "\n" not in row["text"]
    ]


def learn(questions: Sequence[Sequence[Row]]) -> tuple[tuple[float, ...], float]:
    """Learn the coefficients of `PROSE_FEATURES` and the intercept."""
    rows = [row for answers in questions for row in answers]
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit(np.array([features for features, _ in rows]), [right for _, right in rows])
    return tuple(model.coef_[0].round(4).tolist()), round(float(model.intercept_[0]), 4)


def unseen(questions: Sequence[Sequence[Row]]) -> Iterator[tuple[float, bool]]:
    """Yield chance and correctness of each question's first answers under weights of the other folds."""
    for fold in range(FOLDS):
        others = [answers for at, answers in enumerate(questions) if at % FOLDS != fold]
        coefficients, intercept = learn(others)
        for answers in questions[fold::FOLDS]:
            for features, right in answers[::PER_QUESTION]:
                value = intercept + float(np.dot(coefficients, features))
                yield 1 / (1 + float(np.exp(-value))), right


def main() -> None:
    """Learn, print the precision of the bands on held-out folds, write the file."""
    parser = make_parser(__doc__, database=True)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("questions", nargs="+", type=Path)
    asked = parser.parse_args()
    data = json.loads(asked.out.read_text(encoding="utf-8"))
    store = open_store(asked.database)
    questions = rows_of(store, asked.questions)
    coefficients, intercept = learn(questions)
    data["prose"] |= {
        "coefficients": dict(zip(PROSE_FEATURES, coefficients, strict=True)),
        "intercept": intercept,
        "likely_from": LIKELY_FROM,
        "related_from": RELATED_FROM,
    }
    write_json(asked.out, data)
    firsts = list(unseen(questions))
    for name, start in (("likely", LIKELY_FROM), ("related", RELATED_FROM)):
        inside = [right for chance, right in firsts if chance >= start]
        print(f"{name} or better: {len(inside)} of {len(firsts)}, unseen folds right {np.mean(inside):.3f}")


if __name__ == "__main__":
    main()
