"""How the fields of a report are called."""

from __future__ import annotations

from app.knowledge.issue.shapes import GraphEdge

VERSIONS = {
    "vllm": "vLLM",
    "torch": "torch",
    "cuda": "CUDA",
    "python": "Python",
    "transformers": "transformers",
    "driver": "the driver",
}
BACKENDS = {
    "attention": "Attention backend",
    "moe": "MoE backend",
    "all2all": "All-to-all backend",
    "quantization": "Quantization",
    "kv_cache_dtype": "KV cache type",
    "executor": "Executor",
    "structured_output": "Structured output backend",
    "speculative": "Speculative decoding",
    "lora": "LoRA",
    "engine": "Engine",
    "platform": "Platform",
}
REGRESSION = {
    "last_working": "Last version that worked",
    "first_failing": "First version that failed",
    "still_failing": "A later version that still fails",
    "fixed_in": "Version in which it is fixed",
    "culprit": "The change that brought it",
}
FAILURES = {
    "oom": "out of memory",
    "wrong_output": "wrong output",
    "install": "installation failure",
    "other": "other failure",
    "none": "no failure told",
}
"""Kinds of failure whose word differs from their name."""
SPEAKERS = {"reporter": "the reporter", "maintainer": "a maintainer", "other": "another user"}
EDGES = {
    "duplicate": "duplicate of",
    "same": "said to be the same as",
    "introduced_by": "introduced by",
    "fixed_by": "fixed by, it is said",
    "fixes": "says it fixes",
    "similar": "said to be similar to",
    "mentions": "mentions",
    "moved_to": "moved to",
}
"""Read from an edge's source to its target."""
INCOMING = {
    "duplicate": "says it is a duplicate of this",
    "same": "says it is the same",
    "introduced_by": "says this one introduced it",
    "fixed_by": "says this one fixes it",
    "fixes": "says it fixes this",
    "similar": "says it is similar",
    "mentions": "mentions this",
    "moved_to": "moved here",
}
"""The same, seen from the target."""
LIKENESS = {"same": "alike: same failure", "likely": "alike: likely the same", "related": "alike: related"}


def relation_words(edge: GraphEdge, root: str) -> str:
    """A relation as seen from the issue of the report, whose key is `root`."""
    if edge.basis == "likeness":
        return LIKENESS[edge.band or "related"]
    return (EDGES if edge.source == root else INCOMING)[edge.kind]
