"""Features of one issue, used to compare it with others.

In: an issue's title, own text and facts. Out: `PairFeatures`: five weighted bags of words, the conditions
under which it failed, and its distinctive names and frames. Word weights are data (`pair_words.json`, learned
by `app.train.pair_score`), not counts of the stored corpus, so that a pair's score does not depend on other
stored issues.
"""

import json
import math
import re
from array import array
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
from app.extract.log.messages import is_hint, wrapper_rule
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
MAX_SAID_CHARS = 300
MIN_TITLE_WEIGHT = 8.0
"""Minimum denominator of title coverage: a title of one or two words is weak evidence."""
MIN_CLAIM_NORM, MIN_TEXT_NORM = 10.0, 15.0
"""Minimum norm used for normalisation, so that two short texts such as "it fails" score low."""
MIN_STEM_CHARS = 4
MIN_SPECIFIC_NORM = 17.0
"""Minimum norm of a specific error message or title; "invalid argument" is below."""
MIN_SUBJECT_WEIGHT = 5.0
"""Minimum weight of a distinctive identifier: found in fewer than one of 150 issues ("LoRA" is not)."""
ARCHITECTURE_ENDINGS = (
    "forcausallm",
    "forconditionalgeneration",
    "forsequenceclassification",
    "formaskedlm",
    "model",
    "processor",
)
"""Suffixes of model class names, in lower case: an error that names such a class is about that model."""

# `re` instead of RE2: ten times faster at `findall`, and these patterns do not backtrack.
_WORD = re.compile(r"[a-z][a-z0-9_]{1,59}|!!!+|[\u4e00-\u9fff]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[._-][A-Za-z0-9_]+)*")
_EDGES = re.compile(r"^\W+|\W+$")
_INSIDE_NAME = re.compile(r"[a-z][A-Z]|[0-9]")
_SETS = (
    *("conditions", "title_conditions", "platforms", "families", "backends", "types"),
    *("specific", "subjects", "axes"),
)
_DUMP_MARKS: tuple[str, ...] = tuple(load("environment")["marks"])
_RENAMED = {"AcceleratorError": "RuntimeError", "CUDA error": "RuntimeError", "HIP error": "RuntimeError"}
"""Older and newer names of the same error class."""
SHARED_AXES = frozenset({"generic", "late", "test"})
"""Axes of lines that are not distinctive of one failure."""
VAGUE_AXES = frozenset({"generic", "late"})
"""Axes of words that unlike failures share whatever their model: conditions must agree, too."""
MODEL = "model"
"""Axis of messages that every model's own code can fail with."""
COMMON = "common"
"""Axis of words that any code may fail with: those of a language or library (`common_errors.toml`), too."""
_OUT_OF_MEMORY = "OutOfMemoryError"


Bag = Mapping[int, float]
"""Hashes of terms (CRC-32) with their weights."""


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """The features of one issue.

    Attributes:
        day: creation date as a proleptic ordinal (`date.toordinal`); None if unknown.
        commonness: ln(1 + n), where n issues of the training corpus have the same masked message.
        conditions: vLLM features in use; `title_conditions`: those that the title names.
        backends: as `name=value`.
        specific: which of `TITLE` and `MESSAGE` are distinctive of one failure.
        subjects: distinctive identifiers and model classes in the error message, or in the title if there is
            no message.
        axes: the ways in which unlike failures share the message, or the title if there is no message.
        said: the `TITLE`, and the masked `MESSAGE`, as they are compared word by word.
        bags: a bag for each name of `BAGS`.
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
    subjects: frozenset[str]
    axes: frozenset[str]
    said: Mapping[str, str]
    bags: Mapping[str, Bag]


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
    error = facts.error
    message = error.message if error else ""
    if "mute" in axes_of(message):
        message = ""
    axes = axes_of(message or plain)
    if load_rule_set("common_errors").meeting(message):
        axes.add(COMMON)
    rules = load_rule_set("conditions")
    in_title = list(rules.meeting(title))
    devices = " ; ".join((*facts.gpus, *facts.backends.get("platform", ())))
    title_conditions = _of_axis("condition", in_title)
    specific = {
        TITLE: facts.is_failure
        and not (_is_shared(title) or COMMON in axes_of(title))
        and _is_distinctive(plain, known),
        MESSAGE: not _is_shared(message) and _is_distinctive(mask(message), known),
    }
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
        subjects=frozenset(
            name
            for name in names_of(mask(message or title))
            if name.endswith(ARCHITECTURE_ENDINGS)
            or ("-" not in name and known.names.get(name, known.top) >= MIN_SUBJECT_WEIGHT)
        ),
        axes=frozenset(axes),
        said={TITLE: plain[:MAX_SAID_CHARS], MESSAGE: mask(message)[:MAX_SAID_CHARS]},
        bags=_bags(plain, message, f"{plain} {text[:MAX_TEXT_CHARS]}", known),
    )


def axes_of(text: str) -> set[str]:
    """Return the ways in which unlike failures share a line (`generic.toml`)."""
    return {rule["axis"] for rule in load_rule_set("generic").meeting(text)}


def _is_shared(text: str) -> bool:
    """True if a title or message is one of many failures, of a test, or only reports another error."""
    wrapper = wrapper_rule(text)
    inner = wrapper.pattern.search(text).groupdict().get("inner") if wrapper else None
    return bool(axes_of(text) & SHARED_AXES) or (wrapper is not None and not inner) or is_hint(text)


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


def _bags(title: str, message: str, text: str, known: WordWeights) -> dict[str, Bag]:
    stems = Counter(stem(word) for word in words_of(text))
    title_stems = {stem(word): known.words.get(stem(word), known.top) for word in words_of(title)}
    names = {name: known.names.get(name, known.top) for name in names_of(text)}
    whole = max(MIN_TITLE_WEIGHT, sum(title_stems.values()))
    bags = {
        TITLE: _claim(title, known),
        MESSAGE: _claim(mask(message), known),
        WORDS: _unit(_heaviest(_weigh(stems, known.words, known.top), MAX_WORDS), MIN_TEXT_NORM),
        NAMES: _heaviest(names, MAX_NAMES),
        TITLE_WORDS: {word: weight / whole for word, weight in title_stems.items()},
    }
    return {name: _hashed(weights) for name, weights in bags.items()}


def _hashed(weights: Mapping[str, float]) -> Bag:
    """Replace the terms by their hashes, and round the weights as `pack_features` stores them."""
    by_id = {crc32(term.encode(errors="replace")): weight for term, weight in weights.items()}
    return dict(zip(sorted(by_id), array("f", (by_id[key] for key in sorted(by_id))), strict=True))


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
    kept = find_packed_features(session, repo_id, numbers)
    return {number: unpack_features(packed) for number, packed in kept.items()}


def pack_features(features: PairFeatures) -> bytes:
    """Serialise features: a line of JSON, then ids and weights of all bags; equal features, equal bytes."""
    bags = [features.bags[name] for name in BAGS]
    head: dict[str, Any] = {
        "day": features.day,
        "commonness": features.commonness,
        "sizes": [len(bag) for bag in bags],
        "said": dict(features.said),
        **{name: sorted(getattr(features, name)) for name in _SETS},
    }
    ids = np.array([key for bag in bags for key in bag], dtype="<u4")
    weights = np.array([weight for bag in bags for weight in bag.values()], dtype="<f4")
    line = json.dumps(head, separators=(",", ":")).encode()
    return b"%b\n%b%b" % (line, ids.tobytes(), weights.tobytes())


def unpack_features(packed: bytes) -> PairFeatures:
    """Return the features that `pack_features` serialised."""
    line, _, rest = packed.partition(b"\n")
    head = json.loads(line)
    size = sum(head["sizes"])
    ids = np.frombuffer(rest, dtype="<u4", count=size).tolist()
    weights = np.frombuffer(rest, dtype="<f4", offset=4 * size).tolist()
    ends = accumulate(head["sizes"], initial=0)
    bags = {
        name: dict(zip(ids[start:end], weights[start:end], strict=True))
        for name, (start, end) in zip(BAGS, pairwise(ends), strict=True)
    }
    sets = {name: frozenset(head.get(name, ())) for name in _SETS}  # an older version packed fewer
    said = head.get("said", {TITLE: "", MESSAGE: ""})
    return PairFeatures(day=head["day"], commonness=head["commonness"], said=said, bags=bags, **sets)
