"""Learn `app/extract/statements/weights.npz`: what people state about changes, versions and pull requests.

    python -m app.train.statements --issues ISSUES.jsonl.gz… [--threads THREADS.jsonl.gz] [--labels MORE…]

`--issues`: texts as GitHub sends them (`number`, `title`, `body`); `--threads`: threads of another project
with the texts of their comments, whose numbers are negative in the labels. The labels are
`labels/sentences.jsonl` (spans and outcomes, no text), those of `--labels`, and synthetic sentences
(`phrasings.py`). Rows with `held` are the test set; rows with `dev` are used for training only in the final
fit, after both sets were scored. Method: multinomial logistic regression over all candidates of a sentence
and *nothing*, L-BFGS with an L2 penalty; any candidate that means the labelled change is right. For remedies,
a second-stage model (the "second opinion") is stacked on out-of-fold predictions.
Printed: precision and recall on `dev` and `held`, by threshold; chances are calibrated on `dev`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from app.extract.statements.model import (
    FAILS,
    REMEDY_CLASSES,
    ROLE_CLASSES,
    ROWS,
    WEIGHTS_FILE,
    Statement,
    choose,
    likeliest_role,
    log_odds,
    second_opinion,
    shares_of,
)
from app.extract.text.blocks import read_document
from app.extract.text.document import CommentText, Document, IssueText
from app.train.examples import Labelled, made_examples, read_examples
from app.train.shared import make_parser, read_rows

PENALTY = 1.0
RARE = 3
"""Minimum number of examples with a feature."""

ROLE_PENALTY = 2.0
"""Penalty for roles, chosen by cross-validation."""

MADE = 6000
"""Number of synthetic sentences; `MADE_WEIGHT` is the weight of each, relative to a real one."""

MADE_WEIGHT = 0.3
FOLDS = 4
STRENGTH = 0.1
"""Inverse regularisation strength (`C`) of the second opinion."""

LABELS = Path(__file__).parent / "labels" / "sentences.jsonl"
THRESHOLDS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Examples as matrices: features of candidates and sentences, and the right (candidate, class) pairs."""

    candidates: csr_matrix
    sentences: csr_matrix
    owner: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    right: Matrix
    weight: Matrix


def _table(examples: Sequence[Labelled], classes: int) -> _Table:
    used = [example for example in examples if example.spans]
    counts = [len(example.spans) for example in used]
    owner = np.repeat(np.arange(len(used)), counts)
    right = np.zeros((len(owner), classes))
    at = 0
    for example in used:
        for index in example.classes:
            if index is not None:
                right[at, index] = 1.0
            at += 1
    weight = np.array([_weight(example) for example in used])
    return _Table(
        _matrix(row for example in used for row in example.rows),
        _matrix(example.shared for example in used),
        owner,
        np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64),
        right,
        weight,
    )


def _weight(example: Labelled) -> float:
    if example.use == "made":
        return MADE_WEIGHT
    return 1.0 if not example.is_unsure else 0.5 if example.gold else 0.0


def _matrix(rows: Iterable[Sequence[int]]) -> csr_matrix:
    places: list[int] = []
    ends = [0]
    for row in rows:
        places += row
        ends.append(len(places))
    return csr_matrix((np.ones(len(places)), places, ends), shape=(len(ends) - 1, ROWS))


def learn(
    examples: Sequence[Labelled],
    classes: int,
    penalty: float = PENALTY,
    begin: tuple[Matrix, Matrix] | None = None,
) -> tuple[Matrix, Matrix]:
    """Learn weights (rows by classes) and intercepts by maximum likelihood.

    Args:
        begin: weights learned from fewer examples, as a warm start.
    """
    table = _table(examples, classes)
    hits = np.asarray(table.candidates.sum(axis=0)).ravel() + np.asarray(table.sentences.sum(axis=0)).ravel()
    kept = np.flatnonzero(hits >= RARE)
    candidates = table.candidates[:, kept].astype(np.float32)
    sentences = table.sentences[:, kept].astype(np.float32)
    across, down = candidates.T.tocsr(), sentences.T.tocsr()
    has_right = np.logical_or.reduceat(table.right.any(axis=1), table.starts)
    shape = (len(kept), classes)

    def loss(values: Matrix) -> tuple[float, Matrix]:
        weights, bias = values[:-classes].reshape(shape), values[-classes:]
        narrow = weights.astype(np.float32)
        sums = (candidates @ narrow + (sentences @ narrow)[table.owner]).astype(np.float64) + bias
        top = np.maximum(np.maximum.reduceat(sums.max(axis=1), table.starts), 0.0)
        shares = np.exp(sums - top[table.owner, None])
        nothing = np.exp(-top)
        total = np.add.reduceat(shares.sum(axis=1), table.starts) + nothing
        meant = shares * table.right
        meant_total = np.add.reduceat(meant.sum(axis=1), table.starts)
        likelihood = np.where(has_right, meant_total, nothing) / total
        value = -(table.weight * np.log(likelihood + 1e-300)).sum()
        safe = np.where(has_right, np.maximum(meant_total, 1e-300), 1.0)
        slope = shares / total[table.owner, None] - meant / safe[table.owner, None]
        slope *= table.weight[table.owner, None]
        of_sentences = np.add.reduceat(slope, table.starts, axis=0).astype(np.float32)
        grown = across @ slope.astype(np.float32) + down @ of_sentences + penalty * weights
        gradient = np.concatenate([grown.ravel(), slope.sum(axis=0)])
        return float(value + 0.5 * penalty * (weights**2).sum()), gradient

    start = np.zeros(len(kept) * classes + classes)
    if begin is not None:
        start = np.concatenate([begin[0][kept].ravel(), begin[1]])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 120})
    weights = np.zeros((ROWS, classes))
    weights[kept] = found.x[:-classes].reshape(shape)
    return weights, found.x[-classes:]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Weights (rows by classes), intercepts, and the weights of the second opinion."""

    weights: Matrix
    bias: Matrix
    opinion: Matrix

    def sums(self, example: Labelled) -> Matrix:
        """Return the logits of an example's candidates, by class."""
        shared = self.weights[list(example.shared)].sum(axis=0) + self.bias
        sums: Matrix = np.stack([self.weights[list(rows)].sum(axis=0) for rows in example.rows]) + shared
        return sums


NO_OPINION = np.zeros(0)
Unseen = list[tuple[Labelled, Matrix]]
"""Examples with out-of-fold logits; the last column is filled later."""


def unseen_sums(examples: Sequence[Labelled], classes: int, penalty: float) -> Unseen:
    """Compute out-of-fold logits of each real example; synthetic sentences are in all training folds."""
    real = [example for example in examples if example.use != "made" and example.spans]
    made = [example for example in examples if example.use == "made"]
    groups = [example.number for example in real]
    found: Unseen = []
    for learned, kept in GroupKFold(FOLDS, shuffle=True, random_state=0).split(groups, groups=groups):
        first = Learned(*learn([*(real[i] for i in learned), *made], classes, penalty), NO_OPINION)
        found += [(real[i], _with_empty_column(first.sums(real[i]))) for i in kept]
    return found


def _with_empty_column(sums: Matrix) -> Matrix:
    return np.hstack([sums, np.zeros((len(sums), 1))])


def with_opinion(first: Learned, unseen: Unseen) -> Learned:
    """Add the second opinion as a last column of weights, learned from out-of-fold predictions."""
    examples = [example for example, _ in unseen]
    right = np.array([any(gold[2] != "fails" for gold in example.gold) for example in examples])
    weight = np.array([_weight(example) for example in examples])
    table = _matrix(
        sorted({*example.shared, *example.rows[shares_of(sums)[:, :FAILS].sum(axis=1).argmax()]})
        for example, sums in unseen
    )
    kept = np.flatnonzero(np.asarray(table.sum(axis=0)).ravel() >= RARE)
    table = table[:, kept].tocsr()

    def fit(rows: npt.NDArray[np.int64]) -> LogisticRegression:
        model = LogisticRegression(C=STRENGTH, solver="liblinear")
        return model.fit(table[rows], right[rows], sample_weight=weight[rows])

    groups = [example.number for example in examples]
    inputs = np.array([second_opinion(shares_of(sums), sums) for _, sums in unseen])
    for learned, judged in GroupKFold(FOLDS, shuffle=True, random_state=1).split(groups, groups=groups):
        inputs[judged, 2] = fit(learned).decision_function(table[judged])
    mixed = LogisticRegression(fit_intercept=False).fit(inputs, right, sample_weight=weight)
    whole = fit(np.arange(len(examples)))
    column = np.zeros((ROWS, 1))
    column[kept, 0] = whole.coef_[0]
    bias = np.append(first.bias, whole.intercept_)
    return Learned(np.hstack([first.weights, column]), bias, mixed.coef_[0])


def judge(example: Labelled, learned: Learned) -> tuple[Statement, ...]:
    if not example.spans:
        return ()
    return choose(example.tokens, example.spans, learned.sums(example), learned.opinion)


Judged = list[tuple[Labelled, tuple[Statement, ...]]]


def print_scores(name: str, said: Sequence[tuple[float, bool]], wanted: int) -> None:
    """Print precision and recall by threshold.

    Args:
        said: chance of each statement, and whether it is right.
        wanted: number of labelled statements.
    """
    for threshold in THRESHOLDS:
        kept = [is_right for chance, is_right in said if chance >= threshold]
        precision, recall = sum(kept) / max(1, len(kept)), sum(kept) / max(1, wanted)
        print(f"{name} from {threshold}: p {precision:.3f} r {recall:.3f}")


def calibrate(judged: Judged, are_failures: Iterable[bool]) -> Matrix:
    """Fit Platt scaling: slope and intercept that map log-odds to those of a right span and class.

    Fitted on randomly drawn held-out sentences, separately for what helps and what fails.
    """
    found: list[tuple[float, float]] = []
    for is_failure in are_failures:
        odds: list[float] = []
        right: list[bool] = []
        for example, statements in judged:
            for item in () if example.is_unsure else statements:
                if (item.label == "fails") == is_failure:
                    odds.append(log_odds(item.chance))
                    right.append(any(_is_right(item, gold) for gold in example.gold))
        model = LogisticRegression(C=1e6).fit(np.array(odds)[:, None], right)
        found.append((model.coef_[0][0], model.intercept_[0]))
    return np.array(found)


def _is_right(item: Statement, gold: tuple[int, int, str]) -> bool:
    start, end, label = gold
    return item.start < end and start < item.end and _outcome_group(item.label) == _outcome_group(label)


def _outcome_group(label: str) -> str:
    return "works" if label in ("without", "partial") else label


def _documents(issues: Sequence[Path], threads: Path | None) -> Iterator[tuple[int, Document]]:
    for row in read_rows(issues):
        yield row["number"], read_document(IssueText(row["number"], row["title"], row["body"] or ""))
    for row in read_rows([threads] if threads else ()):
        comments = tuple(
            CommentText(item["body"], at, None, item.get("author_association") or "NONE")
            for at, item in enumerate(row["comments"], start=1)
        )
        text = IssueText(row["number"], row["title"], row["body"] or "", comments=comments)
        yield -row["number"], read_document(text)


def _packed(name: str, learned: Learned, calibration: Matrix) -> dict[str, Any]:
    scale = np.abs(learned.weights).max(axis=0) / 127
    return {
        name: np.round(learned.weights / scale).astype(np.int8),
        f"{name}_scale": scale.astype(np.float32),
        f"{name}_bias": learned.bias.astype(np.float32),
        f"{name}_calibration": calibration.astype(np.float32),
        f"{name}_opinion": learned.opinion.astype(np.float32),
    }


def _remedies(examples: Sequence[Labelled], penalty: float) -> dict[str, Any]:
    known, dev, held = _by_use(examples)
    classes = len(REMEDY_CLASSES)
    first = Learned(*learn(known, classes, penalty), NO_OPINION)
    unseen = unseen_sums(known, classes, penalty)
    learned = with_opinion(first, unseen)
    judged = [(example, judge(example, learned)) for example in dev]
    _print_remedy_scores("dev", judged)
    _print_remedy_scores("held", [(example, judge(example, learned)) for example in held])
    unseen += [(example, _with_empty_column(first.sums(example))) for example in dev if example.spans]
    whole = Learned(*learn([*known, *dev], classes, penalty, (first.weights, first.bias)), NO_OPINION)
    return _packed("remedies", with_opinion(whole, unseen), calibrate(judged, (False, True)))


def _roles(examples: Sequence[Labelled], made: Sequence[Labelled], penalty: float) -> dict[str, Any]:
    def fit(*uses: str) -> Learned:
        used = [*(example for example in examples if example.use in uses), *made]
        return Learned(*learn(used, len(ROLE_CLASSES), penalty), NO_OPINION)

    learned = fit("")
    for use in ("dev", "held"):
        asked = [example for example in examples if example.use == use and not example.is_unsure]
        found = [(likeliest_role(learned.sums(example)[0]), example.classes[0]) for example in asked]
        said = [(chance, ROLE_CLASSES.index(role) == meant) for (role, chance), meant in found]
        print_scores(f"roles {use}", said, sum(meant is not None for _, meant in found))
    no_calibration = np.array([[1.0, 0.0]])
    return _packed("roles", fit("", "dev"), no_calibration)


def _by_use(examples: Sequence[Labelled]) -> tuple[list[Labelled], list[Labelled], list[Labelled]]:
    """Split examples into training, development and test set."""
    known = [example for example in examples if example.use in ("", "made")]
    dev, held = ([example for example in examples if example.use == use] for use in ("dev", "held"))
    return known, dev, held


def _print_remedy_scores(use: str, judged: Judged) -> None:
    sure = [(example, statements) for example, statements in judged if not example.is_unsure]
    said = [
        (item.chance, any(_is_right(item, gold) for gold in example.gold))
        for example, statements in sure
        for item in statements
    ]
    print_scores(f"remedies {use}", said, sum(len(example.gold) for example, _ in sure))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--issues", type=Path, nargs="+", required=True)
    parser.add_argument("--threads", type=Path)
    parser.add_argument("--labels", type=Path, nargs="*", default=())
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--penalty", type=float, default=PENALTY)
    asked = parser.parse_args()
    labels = read_rows([LABELS, *asked.labels])
    remedies, roles, around = read_examples(_documents(asked.issues, asked.threads), labels)
    made = made_examples(MADE, around)
    print(len(remedies), "sentences,", len(roles), "mentions")
    packed = _remedies([*remedies, *made[0]], asked.penalty) | _roles(roles, made[1], ROLE_PENALTY)
    np.savez_compressed(asked.out, **packed)


if __name__ == "__main__":
    main()
