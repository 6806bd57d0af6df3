"""The learned weights, and how candidates are judged by them.

In: a sentence and what stands around it. Out: `Statement`s, each with the chance that it is so. Of one
sentence all candidates and their outcomes compete with each other and with *nothing is stated*: a softmax
over one sum of weights each. Whether the sentence tells of any help is judged once more, by a sum of its
own for the likeliest candidate. Method: logistic regression over hashed features, learned by
`app.train.statements`, which writes `weights.npz`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Literal, get_args
from zlib import crc32

import numpy as np
import numpy.typing as npt

from app.extract.statements.candidates import find_spans, has_cue, may_state
from app.extract.statements.features import (
    Hint,
    Mention,
    Sort,
    Surroundings,
    age_of,
    candidate_features,
    mention_features,
    sentence_features,
)
from app.extract.statements.tokens import Token, tokenise
from app.extract.versions import ordered

WEIGHTS_FILE = Path(__file__).with_name("weights.npz")
ROWS = 1 << 18
"""Rows of the table of weights; a feature's row is its checksum's lowest bits."""

REMEDY_CLASSES = ("works", "without", "partial", "fails")
"""`without`: it works where the candidate is left out."""

FAILS = REMEDY_CLASSES.index("fails")
"""The classes before it help; the table's column behind it holds the weights of the second opinion."""

ROLE_CLASSES = ("last_working", "first_failing", "still_failing", "fixed_in", "culprit")

_AGES = ("unknown", "same", "older", "newer", "other")
_SORTS: tuple[Sort, ...] = get_args(Sort)

SECOND_SHARE = 0.5
"""A further candidate of a sentence counts if it is at least so likely as the best one, relatively."""

MAX_STATEMENTS = 4

MIN_SHARED = -6.5
"""A sentence without hints whose own features sum up to less is not read candidate by candidate: of 85
statements in 5,716 sentences 3 were below, of the sentences without one two thirds."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Statement:
    """A place in a sentence, its class, and the chance that it is meant so."""

    start: int
    end: int
    label: str
    chance: float


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What was learned: a table of rows by classes, an intercept for each class, and how sums become chances.

    `calibration`: slope and intercept between the log-odds of a chance and those of being right, of what
    fails in the last row. `opinion`: the weights of `second_opinion`.
    """

    table: Floats
    bias: Floats
    calibration: Floats
    opinion: Floats

    def calibrated(self, chance: float, is_failure: bool = False) -> float:
        """How often a statement of this chance was right on issues that were not learned from."""
        slope, intercept = self.calibration[-1 if is_failure else 0]
        return 1.0 / (1.0 + exp(-(slope * log_odds(chance) + intercept)))


@lru_cache(maxsize=2)
def load_weights(name: Literal["remedies", "roles"]) -> Weights:
    """The learned weights; tables are kept as whole numbers and a scale."""
    with np.load(WEIGHTS_FILE) as data:
        table = data[name].astype(np.float32) * data[f"{name}_scale"]
        rest = (data[f"{name}_{part}"] for part in ("bias", "calibration", "opinion"))
        return Weights(table, *rest)


def log_odds(chance: float) -> float:
    """The logarithm of a chance's odds, kept finite."""
    kept = min(max(chance, 1e-6), 1.0 - 1e-6)
    return log(kept / (1.0 - kept))


def rows_of(features: Iterable[str]) -> list[int]:
    return list(set(map(_row, features)))


@lru_cache(maxsize=1 << 17)
def _row(feature: str) -> int:
    return crc32(feature.encode()) & (ROWS - 1)


def read_statements(text: str, around: Surroundings, hints: Sequence[Hint] = ()) -> tuple[Statement, ...]:
    """What a sentence states of changes and their outcome, the likeliest first."""
    tokens = tokenise(text) if has_cue(text.lower().replace("’", "'")) else ()
    if not may_state(tokens):
        return ()
    used = load_weights("remedies")
    shared = used.table[rows_of(sentence_features(text, tokens, around))].sum(axis=0) + used.bias
    spans = find_spans(tokens) if hints or shared[: FAILS + 1].max() >= MIN_SHARED else []
    if not spans:
        return ()
    words = title_words(around.title)
    sums = np.stack(
        [used.table[rows_of(candidate_features(text, tokens, s, words, hints))].sum(axis=0) for s in spans]
    )
    found = choose(tokens, spans, sums + shared, used.opinion)
    return tuple(
        replace(item, chance=round(used.calibrated(item.chance, item.label == "fails"), 2)) for item in found
    )


def choose(
    tokens: Sequence[Token],
    spans: Sequence[tuple[int, int]],
    sums: npt.NDArray[np.floating],
    opinion: npt.NDArray[np.floating],
) -> tuple[Statement, ...]:
    """The statements among the sums of all candidates and classes; none overlaps a likelier one."""
    chances = shares_of(sums)
    helps = 1.0 / (1.0 + exp(-float(opinion @ second_opinion(chances, sums))))
    any_chance = float(chances.sum())
    chosen: list[Statement] = []
    places: list[tuple[int, int]] = []
    by_span = chances.sum(axis=1)
    best = float(by_span.max())
    for index in np.argsort(-by_span):
        if by_span[index] < SECOND_SHARE * best or len(chosen) == MAX_STATEMENTS:
            break
        first, last = spans[index]
        if any(first < b and a < last for a, b in places):
            continue
        places.append((first, last))
        label = REMEDY_CLASSES[int(chances[index].argmax())]
        chance = (any_chance if label == "fails" else helps) * float(by_span[index]) / best
        chosen.append(Statement(tokens[first].start, tokens[last - 1].end, label, chance))
    return tuple(chosen)


def shares_of(sums: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The chance of each candidate and class; what is missing to 1 is that of nothing."""
    sums = sums[:, : FAILS + 1]
    top = max(0.0, float(sums.max()))
    chances: npt.NDArray[np.floating] = np.exp(sums - top)
    chances /= chances.sum() + np.exp(-top)
    return chances


def second_opinion(
    chances: npt.NDArray[np.floating], sums: npt.NDArray[np.floating]
) -> npt.NDArray[np.floating]:
    """What decides whether a sentence tells of any help: log-odds of help and failure, its own sum, and 1.

    Its own sum is that of the candidate that helps likeliest; candidates compete there no more.
    """
    helping = chances[:, :FAILS].sum(axis=1)
    own = sums[helping.argmax(), FAILS + 1]
    return np.array([log_odds(float(helping.sum())), log_odds(float(chances[:, FAILS].sum())), own, 1.0])


@lru_cache(maxsize=64)
def title_words(title: str) -> frozenset[str]:
    """The kinds of a title's tokens."""
    return frozenset(token.kind for token in tokenise(title))


@dataclass(frozen=True, slots=True, eq=False)
class SaidMention:
    """A mention of a document: its sentence's number, its place among that one's, and its features."""

    mention: Mention
    sentence: int
    index: int
    beside: int
    age: str
    hints: frozenset[str]
    rows: tuple[int, ...]


def said_mentions(
    text: str, mentions: Sequence[Mention], around: Surroundings, hints: Sequence[Hint], sentence: int
) -> list[SaidMention]:
    """The mentions of one sentence."""
    tokens, words = tokenise(text), title_words(around.title)
    places = [(one, span) for one in mentions if (span := covering(tokens, one.start, one.end))]
    spans = [span for _, span in places]
    shared = list(sentence_features(text, tokens, around)) if places else []
    found: list[SaidMention] = []
    for index, (one, span) in enumerate(places):
        own = candidate_features(text, tokens, span, words, hints)
        beside = mention_features(tokens, spans, index, one, around)
        rows = tuple(rows_of((*shared, *own, *beside)))
        labels = frozenset(hint.label for hint in hints if hint.start < one.end and one.start < hint.end)
        age = age_of(one.value, around.reported)
        found.append(SaidMention(one, sentence, index, len(places), age, labels, rows))
    return found


def role_sums(said: Sequence[SaidMention]) -> Floats:
    """What each mention's own sentence says for each role, against 0 for none."""
    used = load_weights("roles")
    return np.stack([used.table[list(one.rows)].sum(axis=0) for one in said]) + used.bias


def role_chances(sums: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The chance of each role by such sums."""
    top = np.maximum(sums.max(axis=1, keepdims=True), 0.0)
    shares: npt.NDArray[np.floating] = np.exp(sums - top)
    shares /= shares.sum(axis=1, keepdims=True) + np.exp(-top)
    return shares


def document_features(
    said: Sequence[SaidMention], sums: npt.NDArray[np.floating]
) -> npt.NDArray[np.floating]:
    """What a whole document says of each mention: its own sums, and the likeliest roles of the other ones.

    Others are: the same value elsewhere, other values of its sort, those of its sentence and of the next
    ones, older versions and newer versions.
    """
    chances = role_chances(sums)
    number = np.arange(len(said))
    sentence = np.array([one.sentence for one in said])
    value = np.array([one.mention.value for one in said])
    sort = np.array([one.mention.sort for one in said])
    placed = [ordered(one.mention.value) if "." in one.mention.value else None for one in said]
    places = {version: at for at, version in enumerate(sorted({one for one in placed if one is not None}))}
    place = np.array([-1 if version is None else places[version] for version in placed])
    rows: list[list[float]] = []
    for at, one in enumerate(said):
        apart, same = number != at, value == value[at]
        other = ~same & (sort == sort[at])
        older = other & (place >= 0) & (place < place[at])
        newer = other & (place > place[at]) & (place[at] >= 0)
        near = np.abs(sentence - sentence[at]) == 1
        groups = apart & same, other, apart & (sentence == sentence[at]), near, older, newer
        row: list[float] = [*sums[at], 1.0 - float(chances[at].sum())]
        for group in groups:
            row += [
                float(group.sum()),
                *(chances[group].max(axis=0) if group.any() else np.zeros(len(ROLE_CLASSES))),
            ]
        row += [float(role in one.hints) for role in ROLE_CLASSES]
        row += [float(one.age == age) for age in _AGES] + [float(one.mention.sort == it) for it in _SORTS]
        rows.append([*row, one.index, one.beside, one.sentence, len(said)])
    return np.array(rows)


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Boosted trees, one for each class of each round, as arrays of rounds * classes by nodes.

    A leaf leads to itself. `base`: the sums before any tree; the first class is none.
    """

    feature: npt.NDArray[np.integer]
    limit: Floats
    left: npt.NDArray[np.integer]
    right: npt.NDArray[np.integer]
    value: Floats
    base: Floats

    def sums(self, features: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """The sums of all classes for each row of features."""
        trees = np.arange(len(self.feature))
        at = np.zeros((len(features), len(trees)), dtype=np.int64)
        for _ in range(self.feature.shape[1] // 2):
            seen = np.take_along_axis(features, self.feature[trees, at], axis=1)
            is_left = seen <= self.limit[trees, at]
            at = np.where(is_left, self.left[trees, at], self.right[trees, at])
        grown = self.value[trees, at].reshape(len(features), -1, len(self.base)).sum(axis=1)
        return np.asarray(grown + self.base)


@lru_cache(maxsize=1)
def load_trees() -> Trees:
    """The learned trees that decide roles."""
    with np.load(WEIGHTS_FILE) as data:
        return Trees(*(data[f"trees_{name.name}"] for name in fields(Trees)))


def decide_roles(said: Sequence[SaidMention]) -> list[tuple[str, float]]:
    """The likeliest role of each of a document's mentions and its chance, which may be low."""
    if not said:
        return []
    return likeliest_roles(load_trees().sums(document_features(said, role_sums(said))))


def likeliest_roles(sums: npt.NDArray[np.floating]) -> list[tuple[str, float]]:
    """The likeliest role by the sums of none and all roles, and its share."""
    shares = np.exp(sums - sums.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    best = shares[:, 1:].argmax(axis=1)
    return [(ROLE_CLASSES[role], float(row[role + 1])) for role, row in zip(best, shares, strict=True)]


def covering(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int] | None:
    """The tokens that a place lies in."""
    inside = [index for index, token in enumerate(tokens) if token.start < end and start < token.end]
    return (inside[0], inside[-1] + 1) if inside else None
