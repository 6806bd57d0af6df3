"""One sentence of an issue, made of its facts: what fails, where, with what remedy."""

from __future__ import annotations

from app.extract.facts import Facts

MAX_CHARS = 300

KIND_WORDS = {
    "crash": "Crashes",
    "exception": "Fails",
    "hang": "Hangs",
    "oom": "Runs out of memory",
    "wrong_output": "Gives wrong output",
    "slowdown": "Is slow",
    "install": "Does not install",
    "other": "Fails",
}


def summarise(facts: Facts) -> str:
    """At most 300 characters; empty where the issue reports no failure."""
    if not facts.is_failure:
        return ""
    error = facts.error
    what = KIND_WORDS.get(facts.failure_kind, "Fails")
    if error is not None:
        told = ": ".join(part for part in (error.type, _cut(error.message, 110)) if part)
        what = f"{what} with {told}" + (f" at {error.frame}" if error.frame else "")
    where = [
        f"on {', '.join(facts.gpus[:2])}" if facts.gpus else "",
        f"with {facts.models[0]}" if facts.models else "",
        f"in vLLM {facts.versions['vllm']}" if "vllm" in facts.versions else "",
    ]
    sentence = " ".join([what, *(part for part in where if part)]) + "."
    helped = [item for item in facts.workarounds if item.outcome == "works"]
    if helped:
        sentence += f" Helps: {_cut(helped[0].action, 80)}."
    return _cut(sentence, MAX_CHARS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
