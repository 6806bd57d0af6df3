"""Learns `app/extract/statements/weights.npz`: what people state of changes, versions and pull requests.

    python -m app.train.statements --issues ISSUES.jsonl.gz… [--threads THREADS.jsonl.gz] [--labels MORE…]

`--issues`: texts as GitHub sends them (`number`, `title`, `body`); `--threads`: threads of another project
with the texts of their comments, whose numbers are negative in the labels. The labels are
`labels/sentences.jsonl` (places and outcomes, no text), those of `--labels`, and sentences of our own
words (`phrasings.py`). Rows with `held` are never learned from; those with `dev` only after all has been
scored on both. Method: multinomial logistic regression over all candidates of a sentence and *nothing*,
L-BFGS with an L2 penalty; the gold is any candidate that means the labelled change.
Printed: precision and recall of the rows not learned from, by threshold; chances are calibrated on `dev`.
"""

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from app.extract.prose.regression import mentions_in, role_hints
from app.extract.remedies.sentences import read_remedies
from app.extract.remedies.stated import remedy_hints
from app.extract.statements.candidates import find_spans, may_state
from app.extract.statements.features import (
    Surroundings,
    candidate_features,
    mention_features,
    sentence_features,
    surroundings_of,
)
from app.extract.statements.model import (
    REMEDY_CLASSES,
    ROLE_CLASSES,
    ROWS,
    WEIGHTS_FILE,
    Statement,
    choose,
    covering,
    likeliest_role,
    log_odds,
    rows_of,
    title_words,
)
from app.extract.statements.tokens import NAMED, Token, tokenise
from app.extract.text.blocks import read_document
from app.extract.text.document import CommentText, Document, IssueText
from app.extract.text.sentences import Sentence, read_sentences
from app.train.phrasings import make_issues

PENALTY = 1.0
RARE = 3
"""A row of the table that is hit less often is chance."""

MOSTLY = 0.8
"""How much of a sentence a label must cover to speak of it."""

OVERLAP = 0.3
MADE = 6000
"""Sentences of our own words, and how much one of them counts beside a real one."""

MADE_WEIGHT = 0.3
LABELS = Path(__file__).parent / "labels" / "sentences.jsonl"
THRESHOLDS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """One sentence: its candidates with the class of each (None: not meant), and the rows of its features.

    For roles each mention is an example of its own with one candidate.
    """

    number: int
    use: str
    """`held`: never learned from; `dev`: learned from last; `made`: of our own words; else ""."""

    is_unsure: bool
    tokens: tuple[Token, ...]
    spans: tuple[tuple[int, int], ...]
    classes: tuple[int | None, ...]
    shared: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    gold: tuple[tuple[int, int, str], ...]


def read_examples(
    documents: Iterable[tuple[int, Document]], labels: Iterable[dict[str, Any]]
) -> tuple[list[Labelled], list[Labelled], list[Surroundings]]:
    """Examples of remedies and of roles: every labelled sentence; and what stands around those learned."""
    by_number: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in labels:
        by_number[row["number"]].append(row)
    remedies: list[Labelled] = []
    roles: list[Labelled] = []
    learned: list[Surroundings] = []
    for number, document in documents:
        if number not in by_number:
            continue
        sentences = read_sentences(document)
        for at, sentence in enumerate(sentences):
            label = _label_of(sentence, by_number[number])
            if label is not None:
                around = surroundings_of(document, sentences, at)
                previous = sentences[at - 1] if at else None
                remedies += _remedy_example(number, sentence, previous, around, label)
                roles += _role_examples(number, document, sentence, around, label)
                if not _use_of(label):
                    learned.append(around)
    return remedies, roles, learned


def _label_of(sentence: Sentence, labels: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    for label in labels:
        shared = min(sentence.end, label["end"]) - max(sentence.start, label["start"])
        if label["source"] == sentence.source and shared >= MOSTLY * (sentence.end - sentence.start):
            return label
    return None


def _use_of(label: dict[str, Any]) -> str:
    return label.get("use") or next((use for use in ("held", "dev") if label.get(use)), "")


def _remedy_example(
    number: int,
    sentence: Sentence,
    previous: Sentence | None,
    around: Surroundings,
    label: dict[str, Any],
) -> Iterator[Labelled]:
    tokens = tokenise(sentence.text)
    gold = [
        (start - sentence.start, end - sentence.start, "without" if without else outcome)
        for start, end, outcome, without in label.get("remedies", ())
        if sentence.start <= start < sentence.end
    ]
    spans = find_spans(tokens) if may_state(tokens) else []
    if not spans and not gold:
        return
    words, hints = title_words(around.title), remedy_hints(sentence, read_remedies(sentence, previous))
    yield Labelled(
        number,
        _use_of(label),
        bool(label.get("unsure")),
        tokens,
        tuple(spans),
        _classes_of(tokens, spans, gold),
        tuple(rows_of(sentence_features(sentence.text, tokens, around))),
        tuple(
            tuple(rows_of(candidate_features(sentence.text, tokens, span, words, hints))) for span in spans
        ),
        tuple(gold),
    )


def _classes_of(
    tokens: Sequence[Token], spans: Sequence[tuple[int, int]], gold: Sequence[tuple[int, int, str]]
) -> tuple[int | None, ...]:
    """What each candidate is meant as: the labelled change that it shares most tokens with.

    A change whose candidates all share little is taught by those that share most.
    """
    closest: list[tuple[float, int | None]] = [(0.0, None)] * len(spans)
    for start, end, outcome in gold:
        meant = {at for at, token in enumerate(tokens) if token.start < end and start < token.end}
        shares = [_share(tokens, set(range(*span)), meant) for span in spans]
        least = min(OVERLAP, max(shares, default=0.0))
        for at, share in enumerate(shares):
            if share and share >= least and share > closest[at][0]:
                is_left_out = outcome == "without" and tokens[spans[at][0]].kind in LEAVING
                closest[at] = share, REMEDY_CLASSES.index("works" if is_left_out else outcome)
    return tuple(index for _, index in closest)


def _share(tokens: Sequence[Token], inside: set[int], meant: set[int]) -> float:
    """How much of two sets of tokens is common; 0 where a named thing is meant and none of them is inside."""
    both = inside & meant
    named = {at for at in meant if tokens[at].kind in NAMED}
    is_other = bool(named) and not named & both
    return 0.0 if is_other else len(both) / len(inside | meant)


LEAVING = frozenset(["without", "remov", "disabl", "no", "not", "drop", "unset", "omit", "turn", "uninstall"])


def made_examples(count: int, around: Sequence[Surroundings]) -> tuple[list[Labelled], list[Labelled]]:
    """Examples of sentences of our own words, each in the surroundings of a real one.

    What is said of a version may be a remedy too, so those teach roles only.
    """
    made = list(make_issues(count, around))
    documents = ((text.number, read_document(text)) for text, _ in made)
    remedies, roles, _ = read_examples(documents, (label for _, label in made))
    of_versions = {text.number for text, label in made if label["versions"]}
    return [example for example in remedies if example.number not in of_versions], roles


def _role_examples(
    number: int, document: Document, sentence: Sentence, around: Surroundings, label: dict[str, Any]
) -> Iterator[Labelled]:
    tokens = tokenise(sentence.text)
    words, hints = title_words(around.title), role_hints(document, sentence)
    shared = tuple(rows_of(sentence_features(sentence.text, tokens, around)))
    mentions = [(m.start, m.end) for m in mentions_in(sentence)]
    places = [(place, span) for place in mentions if (span := covering(tokens, *place))]
    spans = [span for _, span in places]
    for index, ((start, end), span) in enumerate(places):
        role = ""
        for left, right, said in label.get("versions", ()):
            if left - sentence.start < end and start < right - sentence.start:
                role = said
        features = (
            *candidate_features(sentence.text, tokens, span, words, hints),
            *mention_features(tokens, spans, index, around),
        )
        rows = tuple(rows_of(features))
        yield Labelled(
            number,
            _use_of(label),
            bool(label.get("unsure")),
            tokens,
            (span,),
            (ROLE_CLASSES.index(role) if role else None,),
            shared,
            (rows,),
            ((start, end, role),) if role else (),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Examples as matrices: features of candidates, of sentences, and which pairs are right."""

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
    """Weights (rows by classes) and intercepts that make the labelled candidates likeliest.

    Args:
        begin: weights of fewer examples, from which the search begins.
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


def judge(example: Labelled, weights: Matrix, bias: Matrix) -> tuple[Statement, ...]:
    """What learned weights state of a sentence."""
    if not example.spans:
        return ()
    shared = weights[list(example.shared)].sum(axis=0) + bias
    sums = np.stack([weights[list(rows)].sum(axis=0) for rows in example.rows])
    return choose(example.tokens, example.spans, sums + shared)


def judge_role(example: Labelled, weights: Matrix, bias: Matrix) -> tuple[Statement, ...]:
    """The role that learned weights give to a mention."""
    sums = weights[list(example.rows[0])].sum(axis=0) + weights[list(example.shared)].sum(axis=0) + bias
    first, last = example.spans[0]
    return (Statement(example.tokens[first].start, example.tokens[last - 1].end, *likeliest_role(sums)),)


Judged = list[tuple[Labelled, tuple[Statement, ...]]]


def scores(judged: Judged, threshold: float) -> dict[str, float]:
    """Precision and recall of stating anything that helps, and of the same place and outcome."""
    said = missed = wrong = 0
    same = other = lost = 0
    for example, statements in judged:
        if example.is_unsure:
            continue
        shown = [item for item in statements if item.chance >= threshold]
        helps = [item for item in shown if item.label != "fails"]
        wanted = [gold for gold in example.gold if gold[2] != "fails"]
        said += bool(helps and wanted)
        wrong += bool(helps and not wanted)
        missed += bool(wanted and not helps)
        left = list(shown)
        for start, end, label in example.gold:
            hit = next((item for item in left if _is_meant(item, (start, end, label))), None)
            if hit:
                left.remove(hit)
            same += hit is not None
            lost += hit is None
        other += len(left)
    return {
        "detect_p": said / max(1, said + wrong),
        "detect_r": said / max(1, said + missed),
        "strict_p": same / max(1, same + other),
        "strict_r": same / max(1, same + lost),
    }


def calibrate(judged: Judged) -> Matrix:
    """Slope and intercept that turn the log-odds of a chance into those of being right in place and class.

    By sentences that were drawn at random and not learned from.
    """
    odds: list[float] = []
    right: list[bool] = []
    for example, statements in judged:
        for item in () if example.is_unsure else statements:
            odds.append(log_odds(item.chance))
            right.append(any(_is_meant(item, gold) for gold in example.gold))
    model = LogisticRegression(C=1e6).fit(np.array(odds)[:, None], right)
    return np.array([model.coef_[0][0], model.intercept_[0]])


def _is_meant(item: Statement, gold: tuple[int, int, str]) -> bool:
    start, end, label = gold
    return item.start < end and start < item.end and _kin(item.label) == _kin(label)


def _kin(label: str) -> str:
    return "works" if label in ("without", "partial") else label


def _documents(issues: Sequence[Path], threads: Path | None) -> Iterator[tuple[int, Document]]:
    for path in issues:
        for row in _rows(path):
            yield row["number"], read_document(IssueText(row["number"], row["title"], row["body"] or ""))
    for row in _rows(threads) if threads else ():
        comments = tuple(
            CommentText(item["body"], at, None, item.get("author_association") or "NONE")
            for at, item in enumerate(row["comments"], start=1)
        )
        text = IssueText(row["number"], row["title"], row["body"] or "", comments=comments)
        yield -row["number"], read_document(text)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    packed = path.read_bytes()
    text = gzip.decompress(packed) if path.suffix == ".gz" else packed
    for line in text.decode("utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def _packed(name: str, weights: Matrix, bias: Matrix, calibration: Matrix) -> dict[str, Any]:
    scale = float(np.abs(weights).max()) / 127
    return {
        name: np.round(weights / scale).astype(np.int8),
        f"{name}_scale": np.float32(scale),
        f"{name}_bias": bias.astype(np.float32),
        f"{name}_calibration": calibration.astype(np.float32),
    }


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--issues", type=Path, nargs="+", required=True)
    parser.add_argument("--threads", type=Path)
    parser.add_argument("--labels", type=Path, nargs="*", default=())
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--penalty", type=float, default=PENALTY)
    asked = parser.parse_args()
    labels = [row for path in (LABELS, *asked.labels) if path.exists() for row in _rows(path)]
    remedies, roles, around = read_examples(_documents(asked.issues, asked.threads), labels)
    made = made_examples(MADE, around)
    remedies, roles = [*remedies, *made[0]], [*roles, *made[1]]
    print(len(remedies), "sentences,", len(roles), "mentions")
    packed: dict[str, Any] = {}
    for name, examples, classes, judged_by in (
        ("remedies", remedies, len(REMEDY_CLASSES), judge),
        ("roles", roles, len(ROLE_CLASSES), judge_role),
    ):
        known = [example for example in examples if example.use in ("", "made")]
        dev, held = ([example for example in examples if example.use == use] for use in ("dev", "held"))
        weights, bias = learn(known, classes, asked.penalty)
        unseen = {
            use: [(example, judged_by(example, weights, bias)) for example in rows]
            for use, rows in (("dev", dev), ("held", held))
        }
        for use, rows in unseen.items():
            for threshold in THRESHOLDS:
                figures = " ".join(f"{key} {value:.3f}" for key, value in scores(rows, threshold).items())
                print(f"{name} {use} from {threshold}: {figures}")
        calibration = calibrate(unseen["dev"])
        weights, bias = learn([*known, *dev], classes, asked.penalty, (weights, bias))
        packed |= _packed(name, weights, bias, calibration)
    np.savez_compressed(asked.out, **packed)


if __name__ == "__main__":
    main()
