"""Compare a log's signature and environment with the facts of a stored issue.

In: a log's reading and an issue's facts. Out: an `Agreement`, whose values range from -1 (different) over 0
(unknown on either side) to 1 (equal).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy.orm import Session

from app.extract.facts import Facts, Signature
from app.extract.fields.gpu_names import architectures_of
from app.extract.lists import load
from app.extract.log.signature import mask
from app.extract.reader import LogReading
from app.match.search.log_query import names_in
from app.match.search.terms import words_of
from app.store.derived.facts import find_titles
from app.store.derived.readings import value_key
from app.store.derived.search_index import Key, numbers_by_repository

DISTINCTIVE_BACKENDS = ("attention", "moe", "all2all", "quantization", "kv_cache_dtype", "speculative")
"""Backend settings specific to certain failures; the others occur in nearly every log."""
PUBLISHERS = frozenset({"meta", "nvidia", "unsloth", "neuralmagic", "redhatai", "the", "amd", "ibm"})
"""Leading words of model names that are not a family."""
ALIKE_FROM = -0.7
"""Minimum message agreement at which two messages may be the same one with different names in it."""
NEAR_VERSIONS = 3
"""Distance in minor versions at which version agreement drops to 0."""

_TESTED = re.compile(r"\btest_\w|\btests?/|\bCI\b|\bflaky", re.IGNORECASE)
"""Matches the title of an issue about a test rather than a server."""
_TEST_RUN = re.compile(r"\bpytest\b|\btests/|\btest_\w+\.py")
_WORD = re.compile(r"[a-z]+")
_CALLED = re.compile(r"\w+\(\)")
"""A function named in a message."""
_MODELS = load("models")
_GLUED = frozenset(_MODELS["glued"])
_LINE = re.compile(
    rf"(?<![a-z])({'|'.join(map(str.lower, _MODELS['families'] + _MODELS['word_families']))})"
    r"(?:[-_ ]?([vrkm]?\d{1,2}(?:\.\d{1,2})?)(?![\d.]*(?:[bmxkt]|bit)))?(?![a-z])"
)
"""A model family and its generation; sizes such as `72B` are excluded."""
_AMBIGUOUS = frozenset(map(str.lower, _MODELS["word_families"])) | {"mamba", "hermes", "gpt", "functionary"}

_MINOR = re.compile(r"v?(\d{1,4})\.(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement by kind of fact, from -1 to 1.

    `signature` is 1 or 0: a mismatch means nothing, as an issue may contain several. `message` compares the
    words of the two root causes: an issue may quote the log's message but be about another error. `names` is
    -1 if the messages are similar but name different things or functions. `frame` is 1 if both were raised in
    the same function. `version` falls from 1 (same minor version) towards -1 with the distance. `test`, for
    issues about vLLM's own tests: 1 if the log is a test run, else -1.
    """

    signature: float = 0.0
    message: float = 0.0
    names: float = 0.0
    frame: float = 0.0
    family: float = 0.0
    architecture: float = 0.0
    backend: float = 0.0
    version: float = 0.0
    test: float = 0.0


UNKNOWN = Agreement()
"""Nothing was compared."""


def find_agreements(
    session: Session, reading: LogReading, facts: Mapping[Key, Facts]
) -> dict[Key, Agreement]:
    """Compare the log with each of the issues, given their facts."""
    titles = {
        (repo_id, number): title
        for repo_id, numbers in numbers_by_repository(facts).items()
        for number, title in find_titles(session, repo_id, numbers).items()
    }
    return {key: agreement_of(reading, own, titles.get(key, "")) for key, own in facts.items()}


def agreement_of(reading: LogReading, facts: Facts, title: str) -> Agreement:
    """Compare the log with one issue."""
    mine = reading.surroundings
    message = _message_agreement(reading, facts)
    of_test = 0.0
    if _TESTED.search(title):
        of_test = 1.0 if _TEST_RUN.search(reading.log) else -1.0
    return Agreement(
        signature=float(bool(_roots(reading.signatures) & _roots(facts.signatures))),
        message=message,
        names=-float(message >= ALIKE_FROM and _names_differ(reading, facts)),
        frame=_frame_agreement(reading, facts),
        family=_agree(families_of(mine.models), families_of(facts.models)),
        architecture=_agree(architectures_of(mine.gpus), architectures_of(facts.gpus)),
        backend=_backend_agreement(mine, facts),
        version=_version_agreement(mine.versions.get("vllm"), facts.versions.get("vllm")),
        test=of_test,
    )


def model_family(name: str) -> str:
    """Return a model's family: `qwen` for `Qwen/Qwen2.5-72B-Instruct-AWQ`; empty if the name has no words."""
    words: list[str] = _WORD.findall(name.lower().rstrip("/").rpartition("/")[2])
    return next((word for word in words if word not in PUBLISHERS), "")


def model_line(name: str) -> str:
    """Return family and generation: `qwen2.5` for `Qwen2.5-72B`, `deepseek-v3` for `DeepSeek-V3-0324`."""
    found = _LINE.search(name.lower().rstrip("/").rpartition("/")[2])
    if found is None:
        return model_family(name)
    family, generation = found.groups()
    sign = "" if family in _GLUED or not generation else "-"
    return f"{family}{sign}{generation or ''}"


def families_named(text: str) -> frozenset[str]:
    """Return the model families named in a text, except ambiguous names such as `mamba`."""
    return frozenset(
        model_family(match[1]) for match in _LINE.finditer(text.lower()) if match[1] not in _AMBIGUOUS
    )


def lines_named(text: str) -> frozenset[str]:
    """Return the model families named in a text, with their generations."""
    return frozenset(
        model_line(match[0]) for match in _LINE.finditer(text.lower()) if match[1] not in _AMBIGUOUS
    )


def families_of(models: Iterable[str]) -> frozenset[str]:
    return frozenset(filter(None, map(model_family, models)))


def _roots(signatures: Iterable[Signature]) -> set[str]:
    return {item.id for item in signatures if item.role != "wrapper"}


def _message_agreement(reading: LogReading, facts: Facts) -> float:
    """Return the Jaccard similarity of the words of both messages, scaled to -1 (disjoint) … 1 (equal)."""
    cause = reading.errors.cause or reading.errors.apparent
    if cause is None or facts.error is None:
        return 0.0
    mine, theirs = _words_in(cause.message), _words_in(facts.error.message)
    if not mine or not theirs:
        return 0.0
    return 2 * len(mine & theirs) / len(mine | theirs) - 1


@lru_cache(maxsize=256)
def _words_in(message: str) -> frozenset[str]:
    return frozenset(words_of(mask(message)))


def _names_differ(reading: LogReading, facts: Facts) -> bool:
    """True if the messages name different things or functions and no error of the issue names the log's."""
    cause = reading.errors.cause or reading.errors.apparent
    if cause is None or facts.error is None or not facts.error.message:
        return False
    texts = [signature.text.lower() for signature in facts.signatures]
    called, theirs = (
        set(_CALLED.findall(message.lower())) for message in (cause.message, facts.error.message)
    )
    if called != theirs and not any(name in text for name in called for text in texts):
        return True
    mine, others = names_in(cause.message), names_in(facts.error.message)
    if not mine or not others or mine & others:
        return False
    # a masked number is `<n>`, which is no name
    standing = re.compile(rf"(?<![\w<-])(?:{'|'.join(map(re.escape, mine))})(?![\w>-])")
    return not any(map(standing.search, texts))


def _frame_agreement(reading: LogReading, facts: Facts) -> float:
    """Return 1 if both errors were raised in the same function, else 0: code moves between versions."""
    cause = reading.errors.cause
    if cause is None or facts.error is None or not cause.frame:
        return 0.0
    return float(cause.frame == facts.error.frame)


def _agree(mine: frozenset[str], theirs: frozenset[str]) -> float:
    if not mine or not theirs:
        return 0.0
    return 1.0 if mine & theirs else -1.0


def _backend_agreement(mine: Facts, facts: Facts) -> float:
    total = sum(
        _agree(
            frozenset(map(value_key, mine.backends.get(key, ()))),
            frozenset(map(value_key, facts.backends.get(key, ()))),
        )
        for key in DISTINCTIVE_BACKENDS
    )
    return max(-1.0, min(1.0, total))


def _version_agreement(mine: str | None, theirs: str | None) -> float:
    one, two = (_MINOR.match(version) if version else None for version in (mine, theirs))
    if one is None or two is None:
        return 0.0
    # vLLM has only had major version 0; a different major version is further than any minor one.
    apart = abs(int(one[1]) - int(two[1])) * 100 + abs(int(one[2]) - int(two[2]))
    return 2 * NEAR_VERSIONS / (NEAR_VERSIONS + apart) - 1
