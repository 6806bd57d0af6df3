"""Which accelerators it fails on, and how many the machine has.

In: a `Document` and its `Environment`. Out: evidence for `gpus` (one per canonical name) and `gpu_count`.

Sources, the more trusted first: what the environment dump lists, `nvidia-smi`, the title, then the
author's own words, the log and, last, comments. A lower source is asked only when the higher ones are
silent, since texts also name GPUs on which it works, or where others saw it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from app.extract.evidence import cite
from app.extract.facts import Evidence
from app.extract.fields.environment import Environment
from app.extract.fields.failure_kind import is_wish
from app.extract.fields.gpu_count import count_gpus
from app.extract.fields.gpu_mentions import cpu_only, mentions_of, smi_rows
from app.extract.fields.gpu_names import canonical_name
from app.extract.lists import load
from app.extract.text.document import Document, Span

__all__ = ["count_gpus", "find_gpus"]

_LIST = load("gpus")
_CONFIDENCE: dict[str, float] = _LIST["confidence"]
_SERIES = frozenset(_LIST["series"]["names"])
_NAMELESS = frozenset(_LIST["nameless"]["names"])

MAX_GPUS = 8


@lru_cache(maxsize=2)
def find_gpus(document: Document, environment: Environment) -> tuple[Evidence, ...]:
    """Evidence of field `gpus`, one per canonical name, in the order of the text."""
    if cpu := cpu_only(document, environment):
        return _unique(document, [("CPU", cpu.span)], cpu.how)
    if named := _from_environment(document, environment):
        return named
    if rows := smi_rows(document):
        return _unique(document, ((name, span) for _, name, span in rows), "nvidia_smi")
    if is_wish(document):
        return ()
    mentions = mentions_of(document)
    for rule, chosen in (
        ("title", mentions.title),
        ("stated", mentions.prose),
        ("log", mentions.log),
        ("comment", mentions.comments),
        ("code", mentions.code),
    ):
        if chosen:
            return _unique(document, ((m.name, span) for m, span in chosen), rule)
    return ()


def _from_environment(document: Document, environment: Environment) -> tuple[Evidence, ...]:
    named = []
    for entry in environment.gpus:
        name = canonical_name(entry.value)
        if name is None:
            name = entry.value.split("(")[0].replace("NVIDIA ", "").replace("AMD ", "").strip()
            name = name.split("NoGCNArchName")[0]
            if not name or name.lower() in _NAMELESS:
                continue
        named.append((name, entry.span))
    return _unique(document, named, "environment")


def _unique(document: Document, named: Iterable[tuple[str, Span]], rule: str) -> tuple[Evidence, ...]:
    first: dict[str, Span] = {}
    for name, span in named:
        first.setdefault(name, span)
    for name in _SERIES & first.keys():
        if any(other != name and other.startswith(name) for other in first):
            del first[name]
    return tuple(
        cite(document, "gpus", name, span, f"gpus.{rule}", _CONFIDENCE[rule])
        for name, span in list(first.items())[:MAX_GPUS]
    )
