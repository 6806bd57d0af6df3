"""How far a log's surroundings and signature agree with a stored issue's.

In: a log's reading and an issue's facts. Out: an `Agreement`, of numbers from -1 (they differ) over 0 (one of
the two is unknown) to 1 (they agree).
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
"""Backends whose kernels fail alike; the others stand in nearly every log."""
PUBLISHERS = frozenset({"meta", "nvidia", "unsloth", "neuralmagic", "redhatai", "the", "amd", "ibm"})
"""First words of a model's name that are not its family's."""
ALIKE_FROM = -0.7
"""From this agreement of their words on, two messages may be one with other names in it."""
NEAR_VERSIONS = 3
"""Minor versions at which half of the nearness, from 1 to -1, is lost."""

_TESTED = re.compile(r"\btest_\w|\btests?/|\bCI\b|\bflaky", re.IGNORECASE)
"""In the title of an issue that reports a test, not a server."""
_TEST_RUN = re.compile(r"\bpytest\b|\btests/|\btest_\w+\.py")
_WORD = re.compile(r"[a-z]+")
_CALLED = re.compile(r"\w+\(\)")
"""The function that a message is about."""
_MODELS = load("models")
_GLUED = frozenset(_MODELS["glued"])
_LINE = re.compile(
    rf"(?<![a-z])({'|'.join(map(str.lower, _MODELS['families'] + _MODELS['word_families']))})"
    r"(?:[-_ ]?([vrkm]?\d{1,2}(?:\.\d{1,2})?)(?![\d.]*(?:[bmxkt]|bit)))?(?![a-z])"
)
"""A family's name and its generation, which is no size."""
_AMBIGUOUS = frozenset(map(str.lower, _MODELS["word_families"])) | {"mamba", "hermes", "gpt", "functionary"}

_MINOR = re.compile(r"v?(\d{1,4})\.(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Agreement:
    """What agrees. `signature` is 1 or 0: two that differ say nothing, an issue may hold several.

    `message`: of the log's root cause and the issue's, by their words: an issue may hold a log's message and
    be about another error. `names` is -1 where the two are alike and name other things, or other functions.
    `frame`: where both were raised. `version` falls from 1 (the same minor version) towards -1 with the
    distance. `test`, of an issue that reports a run of vLLM's own tests, is 1 if the log is such a run,
    -1 if it is none.
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
"""Nothing is known to agree or to differ."""


def find_agreements(
    session: Session, reading: LogReading, facts: Mapping[Key, Facts]
) -> dict[Key, Agreement]:
    """How far the log and the issues of these facts agree."""
    titles = {
        (repo_id, number): title
        for repo_id, numbers in numbers_by_repository(facts).items()
        for number, title in find_titles(session, repo_id, numbers).items()
    }
    return {key: agreement_of(reading, own, titles.get(key, "")) for key, own in facts.items()}


def agreement_of(reading: LogReading, facts: Facts, title: str) -> Agreement:
    """How far the log and the issue of this title agree."""
    mine = reading.surroundings
    message = _messages(reading, facts)
    of_test = 0.0
    if _TESTED.search(title):
        of_test = 1.0 if _TEST_RUN.search(reading.log) else -1.0
    return Agreement(
        signature=float(bool(_roots(reading.signatures) & _roots(facts.signatures))),
        message=message,
        names=-float(message >= ALIKE_FROM and _name_others(reading, facts)),
        frame=_frames(reading, facts),
        family=_agree(families_of(mine.models), families_of(facts.models)),
        architecture=_agree(architectures_of(mine.gpus), architectures_of(facts.gpus)),
        backend=_backends(mine, facts),
        version=_nearness(mine.versions.get("vllm"), facts.versions.get("vllm")),
        test=of_test,
    )


def model_family(name: str) -> str:
    """The family of a model: `qwen` of `Qwen/Qwen2.5-72B-Instruct-AWQ`; empty if the name has no words."""
    words: list[str] = _WORD.findall(name.lower().rstrip("/").rpartition("/")[2])
    return next((word for word in words if word not in PUBLISHERS), "")


def model_line(name: str) -> str:
    """A family with its generation: `qwen2.5` of `Qwen/Qwen2.5-72B`, `deepseek-v3` of `DeepSeek-V3-0324`."""
    found = _LINE.search(name.lower().rstrip("/").rpartition("/")[2])
    if found is None:
        return model_family(name)
    family, generation = found.groups()
    sign = "" if family in _GLUED or not generation else "-"
    return f"{family}{sign}{generation or ''}"


def families_named(text: str) -> frozenset[str]:
    """The families of models that a text names; names that are words for other things too are left out."""
    return frozenset(
        model_family(match[1]) for match in _LINE.finditer(text.lower()) if match[1] not in _AMBIGUOUS
    )


def lines_named(text: str) -> frozenset[str]:
    """The families of models that a text names, with their generations."""
    return frozenset(
        model_line(match[0]) for match in _LINE.finditer(text.lower()) if match[1] not in _AMBIGUOUS
    )


def families_of(models: Iterable[str]) -> frozenset[str]:
    return frozenset(filter(None, map(model_family, models)))


def _roots(signatures: Iterable[Signature]) -> set[str]:
    return {item.id for item in signatures if item.role != "wrapper"}


def _messages(reading: LogReading, facts: Facts) -> float:
    """How much of the words of both messages is shared: 1 all of them, -1 none."""
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


def _name_others(reading: LogReading, facts: Facts) -> bool:
    """Whether the messages are about other things or functions, and no error of the issue names the log's."""
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
    return not any(name in text for name in mine for text in texts)


def _frames(reading: LogReading, facts: Facts) -> float:
    """Whether both were raised in one function; that they were in others says little, code moves."""
    cause = reading.errors.cause
    if cause is None or facts.error is None or not cause.frame:
        return 0.0
    return float(cause.frame == facts.error.frame)


def _agree(mine: frozenset[str], theirs: frozenset[str]) -> float:
    if not mine or not theirs:
        return 0.0
    return 1.0 if mine & theirs else -1.0


def _backends(mine: Facts, facts: Facts) -> float:
    total = sum(
        _agree(
            frozenset(map(value_key, mine.backends.get(key, ()))),
            frozenset(map(value_key, facts.backends.get(key, ()))),
        )
        for key in DISTINCTIVE_BACKENDS
    )
    return max(-1.0, min(1.0, total))


def _nearness(mine: str | None, theirs: str | None) -> float:
    one, two = (_MINOR.match(version) if version else None for version in (mine, theirs))
    if one is None or two is None:
        return 0.0
    # vLLM has had major version 0 only; a step of it is further than any of a minor one.
    apart = abs(int(one[1]) - int(two[1])) * 100 + abs(int(one[2]) - int(two[2]))
    return 2 * NEAR_VERSIONS / (NEAR_VERSIONS + apart) - 1
