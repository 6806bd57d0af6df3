"""Compares what was read of labelled issues with their labels, one extracted value at a time.

A label is one JSON object of an issue: the fields of `Facts` as a careful reader would fill them. Values are
compared leniently where a reader cannot tell them apart: case, punctuation, an organisation before a model's
name, a build suffix after a version; of two texts one must hold the other, or share most of its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from app.extract.facts import Facts

SHARED_WORDS_LEAST = 0.6
HELD_WORDS_LEAST = 0.2
"""A text that holds the label counts only if the label is this much of it."""

MESSAGE_WORDS_LEAST = 0.4
"""The same for an error's message."""

_WORD = re.compile(r"[a-z0-9_.\-/]+")


@dataclass(frozen=True, slots=True)
class Judged:
    """One extracted value: who read it, how sure it was, whether the label agrees."""

    number: int
    field: str
    rule: str
    value: str
    confidence: float
    is_right: bool


def judge(facts: Facts, label: dict[str, Any]) -> Iterator[Judged]:
    """Each value of the labelled fields with its verdict; a value cited twice is judged twice."""
    for item in facts.evidence:
        field, _, key = item.field.partition(".")
        if field == "workarounds":
            is_right = _is_remedy(facts, item.value, label["workarounds"])
        elif field == "error":
            if key not in ("message", "wrappers"):
                continue
            is_right = _is_error(key, item.value, label["error"] or {})
        elif field in _PLAINLY:
            told, fold = label[field], _PLAINLY[field]
            wanted = (told or {}).get(key) if key else told
            is_right = fold(item.value) in {fold(str(one)) for one in _listed(wanted)}
        else:
            continue
        yield Judged(facts.number, item.field, item.rule, item.value, item.confidence, is_right)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _is_remedy(facts: Facts, action: str, labelled: Iterable[dict[str, Any]]) -> bool:
    """Whether a label names the action, and says of it what was read: that it helped, or that it did not."""
    fails = {one.outcome == "fails" for one in facts.workarounds if one.action == action}
    return any(is_alike(one["action"], action) and (one["outcome"] == "fails") in fails for one in labelled)


def _is_error(key: str, value: str, error: dict[str, Any]) -> bool:
    if key == "wrappers":
        return any(is_alike(text, value) for text in error.get("wrappers") or [])
    return bool(error) and is_alike(error["message"] or error["type"], value, MESSAGE_WORDS_LEAST)


def is_alike(label: str | None, value: str, held_least: float = HELD_WORDS_LEAST) -> bool:
    """Whether two texts say the same: one holds the other, or most words are shared."""
    left, right = _folded(label or ""), _folded(value)
    mine, theirs = set(_WORD.findall(left)), set(_WORD.findall(right))
    if not mine or not theirs:
        return left == right
    shared = len(mine & theirs)
    if left in right or right in left:
        return shared / max(len(mine), len(theirs)) >= held_least
    return shared / len(mine | theirs) >= SHARED_WORDS_LEAST


def _folded(text: str) -> str:
    return " ".join(text.lower().translate(str.maketrans("", "", "`*\"'")).split())


def _plain(name: str) -> str:
    return re.sub(r"nvidia|amd|geforce|instinct|[^a-z0-9]", "", name.lower())


def _last(name: str) -> str:
    return name.lower().rstrip("/").rpartition("/")[2]


def _version(value: str) -> str:
    return value.lower().removeprefix("v").removeprefix("#").partition("+")[0]


_PLAINLY: dict[str, Callable[[str], str]] = {
    "gpus": _plain, "models": _last, "gpu_count": str, "failure_kind": str, "related": _version,
    "versions": _version, "backends": _plain, "regression": _version,
}  # fmt: skip
"""Fields whose values are compared after folding."""
