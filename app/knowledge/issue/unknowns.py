"""What the sources of an issue do not state: the missing fields, for the report and for the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.extract.facts import BACKEND_KEYS, VERSION_KEYS, Conditions, Facts
from app.knowledge.fix.shapes import FixView
from app.knowledge.issue.shapes import Graph, NotKnown
from app.knowledge.labels import BACKENDS, REGRESSION, VERSIONS

MAIN_FIELDS = frozenset(
    {
        "workarounds",
        "fix.state",
        "gpus",
        "models",
        "versions.vllm",
        "error",
        "regression.first_failing",
        "cause",
    }
)
MAIN_BACKENDS = ("attention", "moe", "quantization")
"""Backends a reader asks for in any failure; the others only where somebody uses them."""


def not_known(
    facts: Facts | None, fix: FixView, graph: Graph, *, comments_missing: bool
) -> tuple[NotKnown, ...]:
    """The missing fields, the weightiest first."""
    missing: Iterable[tuple[str, str]] = [("facts", "Any fact: nothing has been read out of this text.")]
    if facts:
        missing = _facts(facts, fix)
    return tuple(
        NotKnown(field=field, text=text)
        for field, text in (*missing, *_surroundings(graph, comments_missing))
    )


def _facts(facts: Facts, fix: FixView) -> Iterator[tuple[str, str]]:
    if facts.is_failure:
        yield from _remedies(facts)
        yield from _fix(fix)
        yield from _regression(facts)
        yield from _failure(facts)
    if not facts.gpus:
        yield "gpus", "GPU."
    elif facts.gpu_count is None:
        yield "gpu_count", "How many GPUs."
    if not facts.models:
        yield "models", "Model."
    for key in VERSION_KEYS:
        if key not in facts.versions:
            yield f"versions.{key}", f"Version of {'the ' if key == 'driver' else ''}{VERSIONS[key]}."
    for key in BACKEND_KEYS:
        if key in MAIN_BACKENDS and not facts.backends.get(key):
            yield f"backends.{key}", f"{BACKENDS[key]}."


def _remedies(facts: Facts) -> Iterator[tuple[str, str]]:
    helping = [item for item in facts.workarounds if item.outcome != "fails"]
    if not helping:
        yield "workarounds", "A remedy: nobody has told one that helps."
    for item in helping:
        if not item.confirmed_by:
            yield "workarounds.confirmed_by", f"Whether it helped anybody else: {item.action}"
        if item.conditions == Conditions():
            yield "workarounds.conditions", f"Under which conditions it helps: {item.action}"


def _fix(fix: FixView) -> Iterator[tuple[str, str]]:
    if fix.state == "unknown":
        yield "fix.state", "Whether it is fixed."
    if fix.pr is None:
        yield "fix.pr", "A pull request that fixes it: none is known."
    if fix.released_in is None:
        yield "fix.released_in", "A release that holds a fix: none is known."


def _regression(facts: Facts) -> Iterator[tuple[str, str]]:
    for field, label in REGRESSION.items():
        if not getattr(facts.regression, field, None):
            yield f"regression.{field}", f"{label}."


def _failure(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.error is None:
        yield "error", "Error: no error line was found in the text."
    elif facts.error.frame is None:
        yield "error.frame", "Where the error is raised."
    if not facts.cause:
        yield "cause", "Cause."
    elif all(item.certainty == "hypothesis" for item in facts.cause):
        yield "cause", "A proven cause: only a hypothesis is told."
    for outcome in ("fails", "works"):
        if not any(item.outcome == outcome for item in facts.reproduction):
            yield f"reproduction.{outcome}", f"A command that {outcome}."


def _surroundings(graph: Graph, comments_missing: bool) -> Iterator[tuple[str, str]]:
    if comments_missing:
        yield "comments", "What all comments say: GitHub counts more of them than are stored."
    for node in graph.nodes[1:]:
        if node.kind == "unknown":
            name = f"#{node.number}" if node.repo == graph.nodes[0].repo else node.key
            yield f"graph.{node.key}", f"Title and state of {name}: it is not stored."


def main_unknowns(facts: Facts, fix: FixView) -> tuple[str, ...]:
    """The sentences about the missing fields that a reader of any failure looks for."""
    return tuple(text for field, text in _facts(facts, fix) if field in MAIN_FIELDS)
