"""Why a stored issue matches a log, and where the two differ.

`why_not_same` downgrades `same` to `likely` if the two messages have different identifiers in the same
position (`min_thread_k`, `min_thread_n`), and for errors that do not show the cause: CUDA and HIP errors are
reported by a later call, and a wrapper says only that something failed. For these, `same` requires the same
model family, backend or kernel on both sides.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cache

from app.extract.facts import Facts
from app.extract.lists import load
from app.extract.log.messages import ONLY_WRAPPER
from app.extract.log.signature import mask
from app.extract.reader import LogReading
from app.knowledge.diagnosis.shapes import Why
from app.knowledge.labels import BACKENDS
from app.match.search.agreement import DISTINCTIVE_BACKENDS, families_of
from app.match.search.log_search import Candidate
from app.match.search.terms import ERROR, FRAME, STOP_WORDS, TEXT

MAX_PHRASES = 6
MAX_TERM_CHARS = 80
COMPARED_BACKENDS = tuple(key for key in BACKENDS if key not in {"lora", "platform"})
"""Backends compared in an explanation; the others are rarely informative."""

LATE_ERRORS = (
    "illegal memory access",
    "launch failure",
    "device-side assert",
    "misaligned address",
    "illegal instruction",
    "an illegal address",
    "hardware exception",
    "memory access fault",
)
"""Messages of kernel errors that are reported asynchronously, by a later call."""

LATE = (
    "a CUDA error is reported by a later call than the one that caused it, and no model, backend or kernel "
    "is known to agree"
)
WRAPPED = (
    "your log holds only lines that report another error, and no model, backend or kernel is known to agree"
)

NOT_OF_VLLM = "your log is another program's"

ALIKE_FROM = 0.5
"""Minimum `SequenceMatcher` ratio for comparing two messages word by word."""
MESSAGE_CHARS, DIFFERENCE_WORDS_MAX, DIFFERENCES_MAX = 400, 3, 2
_WORD = re.compile(r"\S{3,}")
_MESSAGE_WORD = re.compile(r"[\w./-]+")
_IDENTIFIER = re.compile(r"[A-Za-z]\w*_\w*[A-Za-z]")
"""An identifier with an underscore."""
_PLACEHOLDER = re.compile(rf"\b(?:{'|'.join(row['value'] for row in load('masks')['rule'])})\d?\b")
"""A placeholder that replaces variable text in error terms; see `mask`."""
_KERNEL = re.compile(r"\.cuh?:|\.hip:|kernel|_custom_ops\.py:|triton")


def why_not_same(reading: LogReading, facts: Facts | None, candidate: Candidate) -> str | None:
    """Return why this candidate may not be the same failure; None if there is no reason."""
    cause = reading.errors.cause
    if cause and facts and facts.error:
        for ours, theirs in _differing_words(cause.message, facts.error.message or ""):
            if _IDENTIFIER.search(ours) and _IDENTIFIER.search(theirs):
                return _difference(ours, theirs)
    if cause is None or cause.rule == ONLY_WRAPPER:
        reason = WRAPPED
    elif any(words in cause.message.lower() for words in LATE_ERRORS):
        reason = LATE
    else:
        return None
    if any(channel == FRAME and _KERNEL.search(text) for channel, text, _ in candidate.shared):
        return None
    if facts is None:
        return reason
    mine = reading.surroundings
    frame = cause.frame if cause else None
    agrees = (
        families_of(mine.models) & families_of(facts.models)
        or any(
            _lower(mine.backends.get(key, ())) & _lower(facts.backends.get(key, ()))
            for key in DISTINCTIVE_BACKENDS
        )
        or (frame and facts.error and facts.error.frame == frame and _KERNEL.search(frame))
    )
    return None if agrees else reason


def _lower(values: Iterable[str]) -> set[str]:
    return {value.lower() for value in values}


def explain(reading: LogReading, facts: Facts | None, candidate: Candidate) -> Why:
    """Return what is shared and what differs, most important first."""
    shared = [*_shared_error(reading, facts, candidate), *_shared_frames(candidate)]
    differs: list[str] = []
    if facts is not None:
        _compare(reading, facts, shared, differs)
    if not shared:
        shared = [f"words {_quoted(text)}" for _, text, _ in candidate.shared if is_informative(text)][:3]
    return Why(shared=tuple(shared[:MAX_PHRASES]), differs=tuple(differs[:MAX_PHRASES]))


def _quoted(text: str) -> str:
    return f"“{text[:MAX_TERM_CHARS]}”"


def _shared_error(reading: LogReading, facts: Facts | None, candidate: Candidate) -> list[str]:
    mine = {item.id for item in reading.signatures}
    same = next((item.text for item in facts.signatures if item.id in mine), None) if facts else None
    if same is not None:
        return [f"the whole signature: {same[:160]}"]
    cause = reading.errors.cause
    phrases = []
    if cause and facts and facts.error and facts.error.type == cause.type and cause.type:
        phrases.append(f"error type {cause.type}")
    terms = [(channel, text) for channel, text, _ in candidate.shared if is_informative(text)]
    errors = [text for channel, text in terms if channel == ERROR and not _PLACEHOLDER.search(text)]
    errors = [text for text in errors if not text.startswith("type:")]
    if errors:
        longest, *rest = sorted(errors, key=len, reverse=True)
        named = [longest, *[text for text in rest if text not in longest][:1]]
        phrases.append(f"error words {', '.join(map(_quoted, named))}")
    elif not phrases:
        phrases += [f"words {_quoted(text)}" for channel, text in terms if channel == TEXT][:2]
    return phrases


def is_informative(text: str) -> bool:
    """True if a text has a word that is no number, stop word or shorter than three letters."""
    words = (match[0].lower() for match in _WORD.finditer(text))  # one by one: a log is long
    return any(not word.isdigit() and word not in STOP_WORDS for word in words)


def _shared_frames(candidate: Candidate) -> list[str]:
    frames = [text for channel, text, _ in candidate.shared if channel == FRAME and " > " not in text]
    return [f"frame {text}" for text in frames[:2]]


def _compare(reading: LogReading, facts: Facts, shared: list[str], differs: list[str]) -> None:
    """Compare error type, message, GPU, model, backends and version; append to `shared` and `differs`."""
    mine = reading.surroundings
    cause = reading.errors.cause
    if cause and facts.error and cause.type and facts.error.type and cause.type != facts.error.type:
        differs.append(f"your error is {cause.type}; theirs {facts.error.type}")
    if cause and facts.error:
        found = _differing_words(cause.message, facts.error.message)
        differs += [_difference(*pair) for pair in found[:DIFFERENCES_MAX]]
    backends = [
        (_in_sentence(BACKENDS[key]), mine.backends.get(key, ()), facts.backends.get(key, ()))
        for key in COMPARED_BACKENDS
    ]
    for name, ours, theirs in (
        ("GPU", mine.gpus, facts.gpus),
        ("model", mine.models, facts.models),
        *backends,
    ):
        known = {_comparison_key(item) for item in theirs}
        both = next((item for item in ours if _comparison_key(item) in known), "")
        if both:
            shared.append(f"{name} {both}")
        elif ours and theirs:
            differs.append(f"your {name} is {ours[0]}; theirs {theirs[0]}")
    version, other = mine.versions.get("vllm"), facts.versions.get("vllm")
    if version and version == other:
        shared.append(f"vLLM {version}")
    elif version and other:
        differs.append(f"you run vLLM {version}; theirs {other}")


def _differing_words(mine: str, theirs: str) -> list[tuple[str, str]]:
    """Return the differing words of two similar messages, such as (`dnn`, `gapi`)."""
    ours, others = _MESSAGE_WORD.findall(mine[:MESSAGE_CHARS]), _MESSAGE_WORD.findall(theirs[:MESSAGE_CHARS])
    compared = SequenceMatcher(None, ours, others, autojunk=False)
    if compared.quick_ratio() < ALIKE_FROM or compared.ratio() < ALIKE_FROM:
        return []
    return [
        (" ".join(ours[a:b]), " ".join(others[c:d]))
        for tag, a, b, c, d in compared.get_opcodes()
        if tag == "replace"
        and b - a <= DIFFERENCE_WORDS_MAX
        and d - c <= DIFFERENCE_WORDS_MAX
        and not _differ_only_in_masks(" ".join(ours[a:b]), " ".join(others[c:d]))
    ]


def _differ_only_in_masks(ours: str, theirs: str) -> bool:
    """True if both are equal once masked and no numbers, such as `VllmWorker-0` and `VllmWorker-3`."""
    return mask(ours) == mask(theirs) and not ours.replace(".", "").isdigit()


def _difference(ours: str, theirs: str) -> str:
    return f"your message has {_quoted(ours)}; theirs {_quoted(theirs)}"


@cache
def _in_sentence(label: str) -> str:
    """Return `Attention backend` as `attention backend`; names such as `MoE` are unchanged."""
    return label[0].lower() + label[1:] if label.split(maxsplit=1)[0][1:].islower() else label


def _comparison_key(value: str) -> str:
    """Return a name without owner, punctuation and case, for comparison."""
    return "".join(filter(str.isalnum, value.rsplit("/", 1)[-1].lower()))
