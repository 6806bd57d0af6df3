"""Why a stored issue matches a log, and where the two differ, in short phrases.

In: the log's reading, the issue's facts, the candidate's shared terms. Out: `Why`. Every phrase names a
thing that stands in both (or in one of them); there is no phrase without one.
"""

from __future__ import annotations

from app.extract.facts import Facts
from app.extract.reader import LogReading
from app.knowledge.answers import Why
from app.match.candidates import Candidate
from app.match.terms import ERROR, FRAME, TEXT

MAX_PHRASES = 6
MAX_TERM_CHARS = 80
BACKEND_LABELS = {
    "attention": "attention backend", "moe": "MoE backend", "all2all": "all2all backend",
    "quantization": "quantization", "kv_cache_dtype": "KV cache type", "executor": "executor",
    "structured_output": "structured output backend", "speculative": "speculative decoding",
    "engine": "engine",
}  # fmt: skip
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
