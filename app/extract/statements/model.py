"""Load the learned weights and classify candidates with them.

In: a sentence and its context. Out: `Statement`s with their probability. All candidates of a sentence and
their classes compete with each other and with *nothing is stated*: a softmax over one weighted sum each.
Whether the sentence reports any help is decided once more, by a separate sum for the likeliest candidate.
Method: logistic regression over hashed features, learned by `app.train.statements`, which writes
`weights.npz`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt

from app.extract.statements.candidates import find_spans, has_cue, may_state
from app.extract.statements.features import (
    Hint,
    Mention,
    Sort,
    Surroundings,
    candidate_features,
    context_features,
    mention_features,
    own_features,
    sentence_features,
)
from app.extract.statements.tokens import Token, tokenise

WEIGHTS_FILE = Path(__file__).with_name("weights.npz")
ROWS = 1 << 18
"""Rows of the weight table; a feature's row is the lowest bits of its CRC-32."""

REMEDY_CLASSES = ("works", "without", "partial", "fails")
"""`without`: it works if the candidate is left out."""

FAILS = REMEDY_CLASSES.index("fails")
"""The classes before it are helpful; the table's column after it has the weights of the second opinion."""

ROLE_CLASSES = ("last_working", "first_failing", "still_failing", "fixed_in", "culprit")

RULED = 1.0
"""Added to the sum of a role that rules of the same sentence find, too."""

UNRULED_BLAME = -0.4
"""Added to the sum of a culprit that they do not find: a wrongly blamed change does the most harm."""

_KIND_OF_SORT: dict[Sort, str] = {
    "ours": "VERSION",
    "other": "VERSION",
    "change": "ISSUE",
    "commit": "COMMIT",
}
"""The kind of a mention's token, however it is written: an address, in backticks, with a date."""

SECOND_SHARE = 0.5
"""A further candidate counts if its probability is at least this share of the best one's."""

MAX_STATEMENTS = 4

MIN_OWN = -7.3
"""A sentence whose own features sum to less is skipped unless the grammar reads a remedy in it: in 5,273
issues four of ten sentences, and no statement that is as likely as not."""

MIN_SHARED = -6.0
"""As `MIN_OWN`, with the features of its context. In 5,273 issues this lost 5 of 527 statements, and half of
the candidates were not judged."""

_OUTCOMES = frozenset(["works", "partial", "fails"])
"""Labels of hints that are the grammar's reading of a remedy."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Statement:
    """A range of a sentence, its class, and the probability of that class."""

    start: int
    end: int
    label: str
    chance: float


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The learned weights: a table of rows by classes, an intercept for each class, and the calibration.

    `calibration`: slope and intercept from the log-odds of a raw probability to those of being right; the
    last row is for failures. `opinion`: the weights of `second_opinion`.
    """

    table: Floats
    bias: Floats
    calibration: Floats
    opinion: Floats

    def calibrated(self, chance: float, is_failure: bool = False) -> float:
        """Return how often statements with this raw probability were right on unseen issues."""
        slope, intercept = self.calibration[-1 if is_failure else 0]
        return 1.0 / (1.0 + exp(-(slope * log_odds(chance) + intercept)))


@lru_cache(maxsize=2)
def load_weights(name: Literal["remedies", "roles"]) -> Weights:
    """Load the learned weights; tables are stored as integers with a scale."""
    with np.load(WEIGHTS_FILE) as data:
        table = data[name].astype(np.float32) * data[f"{name}_scale"]
        rest = (data[f"{name}_{part}"] for part in ("bias", "calibration", "opinion"))
        return Weights(table, *rest)


def log_odds(chance: float) -> float:
    """Return the log-odds of a probability, clipped to stay finite."""
    kept = min(max(chance, 1e-6), 1.0 - 1e-6)
    return log(kept / (1.0 - kept))


def rows_of(features: Iterable[str]) -> list[int]:
    """Return the rows of the weight table for features, each once."""
    return list({crc32(feature.encode()) & (ROWS - 1) for feature in features})


def may_tell(text: str) -> bool:
    """True if a sentence by itself may state a change, whatever stands around it."""
    own = _own_sums(text)
    return own is not None and float(own[: FAILS + 1].max()) >= MIN_OWN


@lru_cache(maxsize=2)
def _own_sums(text: str) -> Floats | None:
    """Return the sums of a sentence's own features by class; None if it has no word of an outcome."""
    tokens = tokenise(text) if has_cue(text.lower().replace("’", "'")) else ()
    if not may_state(tokens):
        return None
    used = load_weights("remedies")
    sums: Floats = used.table[rows_of(own_features(text, tokens))].sum(axis=0) + used.bias
    return sums


def read_statements(text: str, around: Surroundings, hints: Sequence[Hint] = ()) -> tuple[Statement, ...]:
    """Return the changes that a sentence states with their outcome, likeliest first."""
    own, is_read = _own_sums(text), any(hint.label in _OUTCOMES for hint in hints)
    if own is None or not (is_read or may_tell(text)):
        return ()
    used, tokens = load_weights("remedies"), tokenise(text)
    shared = own + used.table[rows_of(context_features(around))].sum(axis=0)
    spans = find_spans(tokens) if is_read or shared[: FAILS + 1].max() >= MIN_SHARED else []
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
    """Pick the statements from the sums of all candidates and classes; none overlaps a likelier one."""
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
    """Return the softmax of each candidate and class; the remainder to 1 is *nothing is stated*."""
    sums = sums[:, : FAILS + 1]
    top = max(0.0, float(sums.max()))
    chances: npt.NDArray[np.floating] = np.exp(sums - top)
    chances /= chances.sum() + np.exp(-top)
    return chances


def second_opinion(
    chances: npt.NDArray[np.floating], sums: npt.NDArray[np.floating]
) -> npt.NDArray[np.floating]:
    """Return the inputs that decide if a sentence reports help: log-odds of help and failure, own sum, 1.

    The own sum is that of the likeliest helpful candidate, without competition from the others.
    """
    helping = chances[:, :FAILS].sum(axis=1)
    own = sums[helping.argmax(), FAILS + 1]
    return np.array([log_odds(float(helping.sum())), log_odds(float(chances[:, FAILS].sum())), own, 1.0])


@lru_cache(maxsize=64)
def title_words(title: str) -> frozenset[str]:
    """Return the kinds of a title's tokens."""
    return frozenset(token.kind for token in tokenise(title))


@dataclass(frozen=True, slots=True, eq=False)
class LocatedMention:
    """A mention in a document: index of its sentence, labels of its hints, rows of its features."""

    mention: Mention
    sentence: int
    hints: frozenset[str]
    rows: tuple[int, ...]


def locate_mentions(
    text: str,
    mentions: Sequence[Mention],
    around: Surroundings,
    hints: Sequence[Hint],
    sentence: int,
    *,
    with_others: bool = False,
) -> list[LocatedMention]:
    """Return the mentions of one sentence with their features.

    Versions of other packages are left out unless a hint is about them: no role of theirs counts.

    Args:
        sentence: the index of the sentence in its document.
        with_others: return them, too, as examples to learn from.
    """
    tokens = [_as_mention(token, mentions) for token in tokenise(text)]
    words = title_words(around.title)
    places = [(one, span) for one in mentions if (span := covering(tokens, one.start, one.end))]
    spans = [span for _, span in places]
    shared = rows_of(sentence_features(text, tokens, around)) if places else []
    found: list[LocatedMention] = []
    for index, (one, span) in enumerate(places):
        labels = frozenset(hint.label for hint in hints if hint.start < one.end and one.start < hint.end)
        if one.sort == "other" and not labels and not with_others:
            continue
        own = candidate_features(text, tokens, span, words, hints)
        beside = mention_features(tokens, spans, index, one, around)
        found.append(LocatedMention(one, sentence, labels, tuple({*shared, *rows_of((*own, *beside))})))
    return found


def _as_mention(token: Token, mentions: Sequence[Mention]) -> Token:
    """Return a token of a mention with the kind of its sort, except for pins and links to code."""
    if token.kind in ("PIN", ".") or "/blob/" in token.text:
        return token
    sorts = (one.sort for one in mentions if token.start < one.end and one.start < token.end)
    sort = next(sorts, None)
    return token if sort is None else token._replace(kind=_KIND_OF_SORT[sort])


def decide_roles(mentions: Sequence[LocatedMention]) -> list[tuple[str, float]]:
    """Return the likeliest role of each mention and its probability, which may be low."""
    used = load_weights("roles")
    return [likeliest_role(used.table[list(one.rows)].sum(axis=0) + used.bias, one.hints) for one in mentions]


def likeliest_role(sums: npt.NDArray[np.floating], ruled: Collection[str] = ()) -> tuple[str, float]:
    """Return the likeliest role and its softmax ("no role" sums to 0); `ruled`: the roles that rules find."""
    raised = [
        float(value) + (RULED if role in ruled else UNRULED_BLAME if role == "culprit" else 0.0)
        for role, value in zip(ROLE_CLASSES, sums, strict=True)
    ]
    best = max(raised)
    return ROLE_CLASSES[raised.index(best)], 1.0 / sum(exp(value - best) for value in (*raised, 0.0))


def covering(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int] | None:
    """Return the range of tokens that overlap a range of code points; None if there are none."""
    inside = [index for index, token in enumerate(tokens) if token.start < end and start < token.end]
    return (inside[0], inside[-1] + 1) if inside else None
