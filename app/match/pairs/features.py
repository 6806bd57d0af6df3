"""Features of one issue, used to compare it with others.

In: an issue's title, own text and facts. Out: `PairFeatures`: five weighted bags of words, the conditions
under which it failed, and its distinctive names and frames. Word weights are data (`pair_words.json`, learned
by `app.train.pair_score`), not counts of the stored corpus, so that a pair's score does not depend on other
stored issues.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate, pairwise
from typing import Any
from zlib import crc32

import numpy as np
from sqlalchemy.orm import Session

from app.extract.facts import Facts
from app.extract.lists import FORM_HEADINGS, load
from app.extract.log.signature import mask
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.document import Document
from app.match.search.terms import bare_title
from app.store.derived.links import find_packed_features, save_packed_features

TITLE, MESSAGE, WORDS, NAMES, TITLE_WORDS = "title", "message", "words", "names", "title_words"
BAGS = (TITLE, MESSAGE, WORDS, NAMES, TITLE_WORDS)
"""Title and error message as unigrams and bigrams; all words; identifiers; words of the title."""

MAX_TEXT_CHARS = 6_000
MAX_CONDITION_CHARS = 4_000
"""Characters read from the start of a text: the description comes first, then logs and dumps."""
MAX_WORDS, MAX_NAMES = 160, 100
MESSAGE_KEY_CHARS = 80
MIN_TITLE_WEIGHT = 8.0
"""Minimum denominator of title coverage: a title of one or two words is weak evidence."""
MIN_CLAIM_NORM, MIN_TEXT_NORM = 10.0, 15.0
"""Minimum norm used for normalisation, so that two short texts such as "it fails" score low."""
MIN_STEM_CHARS = 4
MIN_SPECIFIC_NORM = 17.0
"""Minimum norm of a specific error message or title; "invalid argument" is below."""
MIN_SUBJECT_WEIGHT = 5.0
"""Minimum weight of a distinctive identifier: found in fewer than one of 150 issues ("LoRA" is not)."""

# `re` instead of RE2: ten times faster at `findall`, and these patterns do not backtrack.
_WORD = re.compile(r"[a-z][a-z0-9_]{1,59}|!!!+|[\u4e00-\u9fff]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[._-][A-Za-z0-9_]+)*")
_EDGES = re.compile(r"^\W+|\W+$")
_INSIDE_NAME = re.compile(r"[a-z][A-Z]|[0-9]")
_SETS = (
    *("conditions", "title_conditions", "platforms", "families", "backends", "types"),
    *("specific", "places", "subjects"),
)
_DUMP_MARKS: tuple[str, ...] = tuple(load("environment")["marks"])
_SIZES = b'"sizes":['
_RENAMED = {"AcceleratorError": "RuntimeError", "CUDA error": "RuntimeError", "HIP error": "RuntimeError"}
"""Older and newer names of the same error class."""
_OUT_OF_MEMORY = "OutOfMemoryError"


@dataclass(frozen=True, slots=True)
class Bag:
    """Hashed terms (uint32, sorted) with their weights (float32)."""

    ids: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, slots=True)
class Bags:
    """The bags of an issue, concatenated in the order of `BAGS`; `ends`: end offset of each."""

    ids: np.ndarray
    weights: np.ndarray
    ends: tuple[int, ...]

    def __getitem__(self, name: str) -> Bag:
        at = BAGS.index(name)
        here = slice(self.ends[at - 1] if at else 0, self.ends[at])
        return Bag(self.ids[here], self.weights[here])


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """The features of one issue.

    Attributes:
        day: creation date as a proleptic ordinal (`date.toordinal`); None if unknown.
        commonness: ln(1 + n), where n issues of the training corpus have the same masked message.
        conditions: vLLM features in use; `title_conditions`: those that the title names.
        backends: as `name=value`.
        specific: which of `TITLE` and `MESSAGE` are distinctive of one failure.
        places: `class in frame` of the error; empty if its message is generic.
        subjects: distinctive identifiers in the error message, or in the title if there is no message.
    """

    day: int | None
    commonness: float
    conditions: frozenset[str]
    title_conditions: frozenset[str]
    platforms: frozenset[str]
    families: frozenset[str]
    backends: frozenset[str]
    types: frozenset[str]
    specific: frozenset[str]
    places: frozenset[str]
    subjects: frozenset[str]
    bags: Bags


@dataclass(frozen=True, slots=True)
class PackedFeatures:
    """Stored features with only the bags decoded, which is enough to reject most pairs."""

    head: bytes
    bags: Bags

    def unpack(self) -> PairFeatures:
        head = json.loads(self.head)
        sets = {name: frozenset(head.get(name, ())) for name in _SETS}  # an older version packed fewer
        return PairFeatures(day=head["day"], commonness=head["commonness"], bags=self.bags, **sets)


@dataclass(frozen=True, slots=True)
class WordWeights:
    """Word weights for each kind of bag; an unlisted word is rare and has the weight `top`."""

    grams: Mapping[str, float]
    words: Mapping[str, float]
    names: Mapping[str, float]
    top: float
    common_messages: Mapping[str, int]


@lru_cache(maxsize=1)
def load_word_weights() -> WordWeights:
    """Load the packaged word weights."""
    data: dict[str, Any] = json.loads((files(__package__) / "pair_words.json").read_text(encoding="utf-8"))

    def unfold(kind: str) -> dict[str, float]:
        levels: dict[str, str] = data[kind]
        return {
            term.replace("+", " "): float(level) for level, terms in levels.items() for term in terms.split()
        }

    return WordWeights(
        unfold("grams"), unfold("words"), unfold("names"), data["top"], data["common_messages"]
    )


def own_text(document: Document) -> str:
    """Return the issue's body without form headings and without `collect_env.py` output."""
    return "\n".join(
        block.text
        for block in document.of_source("body")
        if _EDGES.sub("", block.text).lower() not in FORM_HEADINGS
        and not any(mark in block.text for mark in _DUMP_MARKS)
    )


def build_features(title: str, text: str, facts: Facts, created_at: datetime | None) -> PairFeatures:
    """Build the features of an issue; `text`: its `own_text`."""
    known = load_word_weights()
    plain = bare_title(title)
    message = facts.error.message if facts.error else ""
    rules = load_rule_set("conditions")
    in_title = list(rules.meeting(title))
    devices = " ; ".join((*facts.gpus, *facts.backends.get("platform", ())))
    title_conditions = _of_axis("condition", in_title)
    generic = load_rule_set("generic")
    is_generic = any(generic.meeting(message))
    specific = {
        TITLE: facts.is_failure and not any(generic.meeting(title)) and _is_distinctive(plain, known),
        MESSAGE: not is_generic and _is_distinctive(mask(message), known),
    }
    error = facts.error
    return PairFeatures(
        day=created_at.toordinal() if created_at else None,
        commonness=round(math.log1p(known.common_messages.get(message_key(message), 0)), 4),
        conditions=title_conditions | _of_axis("condition", rules.meeting(text[:MAX_CONDITION_CHARS])),
        title_conditions=title_conditions,
        platforms=_of_axis("platform", [*in_title, *rules.meeting(devices)]) or frozenset({"cuda"}),
        families=_of_axis("family", [*in_title, *rules.meeting("\n".join(facts.models))]),
        backends=frozenset(f"{key}={one}" for key, values in facts.backends.items() for one in values),
        types=frozenset(error_types(facts)),
        specific=frozenset(name for name, is_specific in specific.items() if is_specific),
        places=frozenset(
            {f"{error.type} in {error.frame}"}
            if error and error.type and error.frame and not is_generic
            else ()
        ),
        subjects=frozenset(
            name
            for name in names_of(mask(message or title))
            if "-" not in name and known.names.get(name, known.top) >= MIN_SUBJECT_WEIGHT
        ),
        bags=_bags(plain, message, f"{plain} {text[:MAX_TEXT_CHARS]}", known),
    )


def _of_axis(axis: str, rules: Iterable[Rule]) -> frozenset[str]:
    return frozenset(rule.id for rule in rules if rule["axis"] == axis)


def message_key(message: str) -> str:
    """Return the key by which equal messages are counted: the masked words; empty for an empty message."""
    return " ".join(words_of(mask(message)))[:MESSAGE_KEY_CHARS] if message else ""


def error_types(facts: Facts) -> set[str]:
    """Return the error classes of an issue, with renamed classes unified."""
    names = [item.text.split(" | ")[0] for item in facts.signatures if item.role != "wrapper"]
    names += [facts.error.type or ""] if facts.error else []
    found = {name.rpartition(".")[2] for name in names if name}
    message = facts.error.message.lower() if facts.error else ""
    found = {_RENAMED.get(name, name) for name in found - {"error"}}
    return found | {_OUT_OF_MEMORY} if "out of memory" in message else found


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text, plus the parts of snake_case names; Chinese as bigrams."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word[0] > "~":
            found += [one + two for one, two in pairwise(word)]
            continue
        found.append(word)
        if "_" in word:
            found += [part for part in word.split("_") if len(part) > 1]
    return found


def grams_of(words: list[str]) -> list[str]:
    """Return unigrams and bigrams."""
    return [*words, *(f"{one} {two}" for one, two in pairwise(words))]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Strip the inflectional suffix of a word."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM_CHARS:
            return word[: -len(ending)]
    return word


def names_of(text: str) -> set[str]:
    """Return the identifiers in a text: names with an underscore, an inner capital or a digit."""
    return {
        name.lower()
        for name in set(_NAME.findall(text))
        if len(name) > MIN_STEM_CHARS - 1 and ("_" in name.strip("_") or _INSIDE_NAME.search(name))
    }


def _bags(title: str, message: str, text: str, known: WordWeights) -> Bags:
    stems = Counter(stem(word) for word in words_of(text))
    title_stems = {stem(word): known.words.get(stem(word), known.top) for word in words_of(title)}
    names = {name: known.names.get(name, known.top) for name in names_of(text)}
    whole = max(MIN_TITLE_WEIGHT, sum(title_stems.values()))
    return _end_to_end(
        {
            TITLE: _claim(title, known),
            MESSAGE: _claim(mask(message), known),
            WORDS: _unit(_heaviest(_weigh(stems, known.words, known.top), MAX_WORDS), MIN_TEXT_NORM),
            NAMES: _heaviest(names, MAX_NAMES),
            TITLE_WORDS: {word: weight / whole for word, weight in title_stems.items()},
        }
    )


def _weigh(counts: Mapping[str, int], known: Mapping[str, float], top: float) -> dict[str, float]:
    return {term: (1 + math.log(count)) * known.get(term, top) for term, count in counts.items()}


def _heaviest(weights: Mapping[str, float], limit: int) -> dict[str, float]:
    if len(weights) <= limit:
        return dict(weights)
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:limit])


def _claim(text: str, known: WordWeights) -> dict[str, float]:
    return _unit(_weigh_grams(text, known), MIN_CLAIM_NORM)


def _is_distinctive(text: str, known: WordWeights) -> bool:
    return _norm(_weigh_grams(text, known)) >= MIN_SPECIFIC_NORM


def _weigh_grams(text: str, known: WordWeights) -> dict[str, float]:
    return _weigh(Counter(grams_of(words_of(text))), known.grams, known.top)


def _unit(weights: dict[str, float], least: float) -> dict[str, float]:
    norm = max(least, _norm(weights))
    return {term: weight / norm for term, weight in weights.items()} if norm else {}


def _norm(weights: Mapping[str, float]) -> float:
    return math.sqrt(sum(weight * weight for weight in weights.values()))


def _end_to_end(bags: Mapping[str, Mapping[str, float]]) -> Bags:
    hashed: list[tuple[int, float]] = []
    ends = []
    for name in BAGS:
        of_bag = {crc32(term.encode(errors="replace")): weight for term, weight in bags[name].items()}
        hashed += sorted(of_bag.items())
        ends.append(len(hashed))
    ids, weights = zip(*hashed, strict=True) if hashed else ((), ())
    return Bags(np.array(ids, dtype="<u4"), np.array(weights, dtype="<f4"), tuple(ends))


def save_features(
    session: Session, repo_id: int, features: Mapping[int, PairFeatures], *, version: str
) -> set[int]:
    """Store the features of these issues.

    Returns the numbers of issues whose features changed or were made by another version.
    """
    return save_packed_features(
        session, repo_id, {number: pack_features(item) for number, item in features.items()}, version=version
    )


def load_features(session: Session, repo_id: int, numbers: Collection[int]) -> dict[int, PairFeatures]:
    """Load the stored features of these issues; issues without features are left out."""
    return {number: kept.unpack() for number, kept in load_packed(session, repo_id, numbers).items()}


def load_packed(session: Session, repo_id: int, numbers: Collection[int]) -> dict[int, PackedFeatures]:
    """Load the stored features with only the bags decoded."""
    kept = find_packed_features(session, repo_id, numbers)
    return {number: open_packed(packed) for number, packed in kept.items()}


def pack_features(features: PairFeatures) -> bytes:
    """Serialise features; equal features give equal bytes."""
    ends = features.bags.ends
    head: dict[str, Any] = {
        "day": features.day,
        "commonness": features.commonness,
        "sizes": [ends[0], *(end - start for start, end in pairwise(ends))],
        **{name: sorted(getattr(features, name)) for name in _SETS},
    }
    return b"".join(
        (
            json.dumps(head, separators=(",", ":")).encode(),
            b"\n",
            features.bags.ids.astype("<u4").tobytes(),
            features.bags.weights.astype("<f4").tobytes(),
        )
    )


def open_packed(packed: bytes) -> PackedFeatures:
    """Decode the bags of `pack_features` output."""
    head, _, rest = packed.partition(b"\n")
    start = head.index(_SIZES) + len(_SIZES)
    ends = tuple(accumulate(map(int, head[start : head.index(b"]", start)].split(b","))))
    ids = np.frombuffer(rest, dtype="<u4", count=ends[-1])
    weights = np.frombuffer(rest, dtype="<f4", offset=4 * ends[-1])
    return PackedFeatures(head, Bags(ids, weights, ends))
