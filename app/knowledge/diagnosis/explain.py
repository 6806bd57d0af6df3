"""When `same` may not be said: errors that name no cause need more than a likeness of words and frames.

A CUDA or HIP error of a kernel is reported by whatever call comes next, so the frames of two such failures
may agree although their kernels do not; a wrapper says only that something failed. For these, `same` needs
the same model family, the same backend or the same kernel on both sides.

The verdict in one sentence.

Why a stored issue matches a log, and where the two differ, in short phrases.

In: the log's reading, the issue's facts, the candidate's shared terms. Out: `Why`. Every phrase names a
thing that stands in both (or in one of them); there is no phrase without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from app.extract.facts import Facts
from app.extract.log.root_cause import ONLY_WRAPPER
from app.extract.reader import LogReading
from app.knowledge.diagnosis.shapes import Band, Match, RootCause, Why
from app.match.search.agreement import TELLING_BACKENDS, families_of
from app.match.search.log_search import Candidate
from app.match.search.terms import ERROR, FRAME, TEXT

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
"""What a kernel's fault is called when it is noticed later."""

LATE = (
    "a CUDA error is reported by a later call than the one that caused it, and no model, backend or kernel "
    "is known to agree"
)
WRAPPED = (
    "your log holds only lines that report another error, and no model, backend or kernel is known to agree"
)

_KERNEL = re.compile(r"\.cuh?:|\.hip:|kernel|_custom_ops\.py:|triton")


def why_not_same(reading: LogReading, facts: Facts | None, candidate: Candidate) -> str | None:
    """Why this candidate cannot be called the same failure; None if nothing speaks against it."""
    reason = _weakness(reading)
    if reason is None or _shares_kernel(candidate):
        return None
    return None if facts is not None and (_agrees(reading, facts) or _fails_in(reading, facts)) else reason


def _weakness(reading: LogReading) -> str | None:
    cause = reading.errors.cause
    if cause is None or cause.rule == ONLY_WRAPPER:
        return WRAPPED
    said = cause.message.lower()
    return LATE if any(words in said for words in LATE_ERRORS) else None


def _agrees(reading: LogReading, facts: Facts) -> bool:
    mine = reading.surroundings
    return bool(families_of(mine.models) & families_of(facts.models)) or any(
        _folded(mine.backends.get(key, ())) & _folded(facts.backends.get(key, ())) for key in TELLING_BACKENDS
    )


def _fails_in(reading: LogReading, facts: Facts) -> bool:
    """Whether both errors are told at the same place of a kernel's source."""
    cause = reading.errors.cause
    mine = cause.frame if cause else None
    return bool(mine and facts.error and facts.error.frame == mine and _KERNEL.search(mine))


def _folded(values: Iterable[str]) -> set[str]:
    return {value.lower() for value in values}


def _shares_kernel(candidate: Candidate) -> bool:
    return any(channel == FRAME and _KERNEL.search(text) for channel, text, _ in candidate.shared)


def issue_name(repo: str, number: int, default_repo: str) -> str:
    """`#1`, or `owner/name#1` for an issue of another repository than the default one, where that is told."""
    return f"#{number}" if not default_repo or repo == default_repo else f"{repo}#{number}"


def headline(
    verdict: Band,
    matches: Sequence[Match],
    cause: RootCause | None,
    *,
    is_question: bool = False,
    repo: str = "",
) -> str:
    """What is said first: which issue this is, or why that cannot be told.

    Args:
        repo: the default repository, whose issues are told by their bare numbers.
    """
    if is_question:
        return _to_question(verdict, matches, repo)
    if verdict in {"same", "likely"}:
        best = matches[0]
        name = issue_name(best.repo, best.number, repo)
        opening = f"You hit {name}" if verdict == "same" else f"Probably {name}"
        sentence = f"{opening}: {_plain(best.title)}"
        if verdict == "likely" and best.why.differs:
            sentence += f" It differs: {best.why.differs[0]}."
        return sentence
    if verdict == "related":
        best = matches[0]
        shared = best.why.shared[0] if best.why.shared else "some of its words"
        name = issue_name(best.repo, best.number, repo)
        return f"No known same failure; closest is {name}, which shares {shared}."
    if cause is None:
        return "No stored issue is known to be this failure: the text holds no error line."
    if not matches:
        return "No stored issue is known to be this failure: nothing stored shares its error or its frames."
    return "No stored issue is known to be this failure: what it shares with others is too common to tell."


def _to_question(verdict: Band, matches: Sequence[Match], repo: str) -> str:
    """What words alone allow: which issue speaks of the same, never that it is the same failure."""
    if verdict == "unknown":
        return (
            "No stored issue is known to answer this: the question's words are too few or too common, "
            "and there is no log to read."
        )
    best = matches[0]
    name = issue_name(best.repo, best.number, repo)
    if verdict == "likely":
        return f"By your words, probably {name}: {_plain(best.title)} No log was read."
    shared = best.why.shared[0] if best.why.shared else "some of its words"
    return f"By your words alone, closest is {name}, which shares {shared}. No log was read."


def _plain(title: str) -> str:
    """A title without its form's prefix, as a sentence."""
    text = title.strip()
    while text.startswith("[") and "]" in text:
        text = text.split("]", 1)[1].lstrip(" :")
    return (text or title).rstrip(".") + "."


MAX_PHRASES = 6
MAX_TERM_CHARS = 80
BACKEND_LABELS = {
    "attention": "attention backend",
    "moe": "MoE backend",
    "all2all": "all2all backend",
    "quantization": "quantization",
    "kv_cache_dtype": "KV cache type",
    "executor": "executor",
    "structured_output": "structured output backend",
    "speculative": "speculative decoding",
    "engine": "engine",
}
"""What is compared; the platform says too little to be worth a line."""


def explain(reading: LogReading, facts: Facts | None, candidate: Candidate) -> Why:
    """What is shared and what differs, the weightiest first."""
    shared = [*_shared_error(reading, facts, candidate), *_shared_frames(candidate)]
    differs: list[str] = []
    if facts is not None:
        _compare(reading, facts, shared, differs)
    if not shared:
        shared = [f"words “{text[:MAX_TERM_CHARS]}”" for _, text, _ in candidate.shared[:3]]
    return Why(shared=tuple(shared[:MAX_PHRASES]), differs=tuple(differs[:MAX_PHRASES]))


def _shared_error(reading: LogReading, facts: Facts | None, candidate: Candidate) -> list[str]:
    cause = reading.errors.cause
    mine = {item.id for item in reading.signatures}
    if facts is not None and any(item.id in mine for item in facts.signatures):
        return [f"the whole signature: {next(s.text for s in facts.signatures if s.id in mine)[:160]}"]
    phrases = []
    if cause and facts and facts.error and facts.error.type == cause.type and cause.type:
        phrases.append(f"error type {cause.type}")
    told = [text for channel, text, _ in candidate.shared if channel == ERROR]
    words = [text for text in told if not text.startswith("type:")]
    if words:
        longest = sorted(words, key=len, reverse=True)[:2]
        phrases.append("error words " + ", ".join(f"“{text[:MAX_TERM_CHARS]}”" for text in longest))
    elif not phrases:
        plain = [text for channel, text, _ in candidate.shared if channel == TEXT][:2]
        phrases += [f"words “{text[:MAX_TERM_CHARS]}”" for text in plain]
    return phrases


def _shared_frames(candidate: Candidate) -> list[str]:
    frames = [text for channel, text, _ in candidate.shared if channel == FRAME and " > " not in text]
    return [f"frame {text}" for text in frames[:2]]


def _compare(reading: LogReading, facts: Facts, shared: list[str], differs: list[str]) -> None:
    mine = reading.surroundings
    cause = reading.errors.cause
    if cause and facts.error and cause.type and facts.error.type and cause.type != facts.error.type:
        differs.append(f"your error is {cause.type}; theirs {facts.error.type}")
    for name, ours, theirs in (
        ("GPU", mine.gpus, facts.gpus),
        ("model", mine.models, facts.models),
    ):
        both = _same(ours, theirs)
        if both:
            shared.append(f"{name} {both}")
        elif ours and theirs:
            differs.append(f"your {name} is {ours[0]}; theirs {theirs[0]}")
    for key, label in BACKEND_LABELS.items():
        if key not in mine.backends or key not in facts.backends:
            continue
        both = _same(mine.backends[key], facts.backends[key])
        if both:
            shared.append(f"{label} {both}")
        else:
            differs.append(f"your {label} is {mine.backends[key][0]}; theirs {facts.backends[key][0]}")
    ours_version, theirs_version = mine.versions.get("vllm"), facts.versions.get("vllm")
    if ours_version and theirs_version:
        if ours_version == theirs_version:
            shared.append(f"vLLM {ours_version}")
        else:
            differs.append(f"you run vLLM {ours_version}; theirs {theirs_version}")


def _same(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    keys = {_key(item) for item in theirs}
    return next((item for item in ours if _key(item) in keys), "")


def _key(value: str) -> str:
    return "".join(filter(str.isalnum, value.rsplit("/", 1)[-1].lower()))
