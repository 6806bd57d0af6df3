"""What an issue does not tell: content in its own right, said in the same type as the rest."""

from __future__ import annotations

from app.extract.facts import Facts
from app.knowledge.answers import FixView


def unknowns(facts: Facts, fix: FixView) -> tuple[str, ...]:
    """What a reader would look for and the issue does not say, in sentences."""
    missing = [
        (not any(item.outcome != "fails" for item in facts.workarounds), "A remedy: nobody has told one."),
        (fix.state == "unknown", "Whether it is fixed."),
        (not facts.gpus, "The GPU."),
        (not facts.models, "The model."),
        ("vllm" not in facts.versions, "The vLLM version that fails."),
        (facts.error is None, "The error itself: no log was found in the text."),
        (facts.regression is None, "Since which version it fails."),
        (not facts.cause, "The cause."),
    ]
    return tuple(sentence for is_missing, sentence in missing if is_missing)
