"""Learn `app/extract/prose/titled_message.json`: which words of a title are a program's message.

    python -m app.train.titled_message --issues ISSUES.jsonl…

`--issues`: texts as GitHub sends them (`number`, `title`, `body`). An issue whose log shows an error teaches
without a label: the spans of its title that mean the logged message are positive, those that share little
with it negative. The issues of `labels/titles.jsonl`, whose logs show none, are added. Prints the scores of
five-fold cross-validation on the latter, as the former are never asked.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from app.extract.prose.titled_message import (
    WEIGHTS_FILE,
    TitleWeights,
    features_of,
    likeliest,
    spans_of,
    words_of,
)
from app.extract.reader import is_printed, read_issue
from app.extract.text.document import IssueText
from app.train.shared import make_parser, read_rows, write_json

LABELS = Path(__file__).parent / "labels" / "titles.jsonl"
FOLDS = 5
STRENGTH = 4.0
"""Inverse regularisation strength (`C`)."""
LABEL_WEIGHT = 8.0
"""Weight of a labelled title; it is of the kind that is asked."""
THRESHOLD = 0.3
RARE = 2
"""Minimum number of examples with a feature."""
SMALLEST = 0.05
"""Smaller weights are left out of the file."""
SAME, ALIKE, APART = 0.6, 0.4, 0.25
"""What `share_of` says: a span means the message; too close to be a negative example; is another."""
NEAR_BEST = 0.05
QUOTED_MIN = 0.4
"""Minimum share of a message's words that a title which quotes it has."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class LabelledTitle:
    """A title, and the message it gives, "" if it gives none."""

    text: str
    message: str


@dataclass(frozen=True, slots=True)
class TitleSpan:
    features: tuple[str, ...]
    is_message: bool
    weight: float = 1.0


def share_of(title: LabelledTitle, span: tuple[int, int]) -> float:
    """Return how well a span covers what the title quotes of the message, from 0 to 1.

    0 if the title has little of the message: common words alone are shared by chance.
    """
    message, whole, words = (
        frozenset(_WORD.findall(text.lower()))
        for text in (title.message, title.text, title.text[slice(*span)])
    )
    quoted = message & whole
    if len(quoted) < max(2, QUOTED_MIN * len(message)):
        return 0.0
    return len(quoted & words) / len(quoted | words)


def examples_of(title: LabelledTitle, weight: float = 1.0) -> Iterator[TitleSpan]:
    """Yield the spans of a title that surely are its message, or surely are not."""
    spans, words = spans_of(title.text), words_of(title.text)
    shares = [share_of(title, span) for span in spans]
    best = max(shares, default=0.0)
    for span, share in zip(spans, shares, strict=True):
        is_message = best >= SAME and share >= best - NEAR_BEST
        if is_message or share < (ALIKE if best >= SAME else APART):
            yield TitleSpan(tuple(set(features_of(title.text, words, span))), is_message, weight)


def read_logged(issues: Iterable[Path], without: frozenset[int]) -> Iterator[LabelledTitle]:
    """Yield the titles of issues whose log shows a message."""
    for row in read_rows(issues):
        if row["number"] in without:
            continue
        issue = IssueText(row["number"], row["title"], row["body"] or "")
        cause = read_issue(issue).errors.cause
        if cause is not None and is_printed(cause) and len(cause.message.split()) > 1:
            yield LabelledTitle(row["title"], cause.message)


def learn(examples: Sequence[TitleSpan]) -> TitleWeights:
    counter = CountVectorizer(analyzer=list, min_df=RARE, binary=True)
    table = counter.fit_transform([one.features for one in examples])
    model = LogisticRegression(C=STRENGTH, max_iter=2000)
    model.fit(table, [one.is_message for one in examples], sample_weight=[one.weight for one in examples])
    weights = {
        name: round(float(weight), 2)
        for name, weight in zip(counter.get_feature_names_out(), model.coef_[0], strict=True)
        if abs(weight) >= SMALLEST
    }
    return TitleWeights(round(float(model.intercept_[0]), 2), THRESHOLD, weights)


def judge(titles: Sequence[LabelledTitle], used: TitleWeights) -> Iterator[tuple[bool, bool, bool]]:
    """Yield for each title whether it gives a message, whether one is found, and whether it is the same."""
    for title in titles:
        chance, span = likeliest(title.text, used)
        is_found = chance >= used.threshold
        is_right = is_found and share_of(title, span) >= SAME
        yield bool(title.message), is_found, is_right


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--issues", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    asked = parser.parse_args()
    labels = {row["number"]: row["message"] for row in read_rows([LABELS])}
    texts = {row["number"]: row["title"] for row in read_rows(asked.issues) if row["number"] in labels}
    labelled = [
        LabelledTitle(text, text[slice(*labels[number])] if labels[number] else "")
        for number, text in texts.items()
    ]
    logged = [one for title in read_logged(asked.issues, frozenset(labels)) for one in examples_of(title)]
    judged: list[tuple[bool, bool, bool]] = []
    for learned, kept in KFold(FOLDS, shuffle=True, random_state=0).split(labelled):
        own = [one for i in learned for one in examples_of(labelled[i], LABEL_WEIGHT)]
        judged += judge([labelled[i] for i in kept], learn([*logged, *own]))
    found, right, given = (sum(column) for column in np.array(judged)[:, [1, 2, 0]].T)
    own = [one for title in labelled for one in examples_of(title, LABEL_WEIGHT)]
    used = learn([*logged, *own])
    figures = {
        "learned": datetime.now(UTC).date().isoformat(),
        "logged": len(logged),
        "labelled": len(labelled),
        "precision": round(float(right / max(1, found)), 2),
        "recall": round(float(right / max(1, given)), 2),
        "threshold": used.threshold,
    }
    write_json(asked.out, {**figures, "intercept": used.intercept, "weights": used.weights}, indent=0)
    print(*(f"{name}: {value}" for name, value in figures.items()), sep="\n")


if __name__ == "__main__":
    main()
