"""What a failure needs of a stack: features that its title or its report's own run names. Pure.

`features.toml` lists them with the options and models that turn each on.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

from app.extract.facts import Facts
from app.extract.fields.settings import normalise_name, read_settings
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import read_log_document
from app.knowledge.stack.stack import Stack

TEXT_MAX = 40_000
"""Code points of a report that are searched for the options of its run."""
_OFF = frozenset({"false", "none", "null", "auto", "0"})
_VARIABLE = pattern(r"\bVLLM_[A-Z0-9_]{3,60}\b")
_OBJECT = pattern(
    r"\b((?:speculative|kv_transfer|compilation)_config)['\"]?\s{0,2}[=:]\s{0,2}(\{[^\n]{0,200})"
)


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    text = (files(__package__) / "features.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=1)
def _features() -> tuple[dict[str, Any], ...]:
    return tuple({**row, "title": pattern(row["title"])} for row in _table()["feature"])


@lru_cache(maxsize=16_384)
def features_of(title: str, labels: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """The features that a failure needs, by its title and labels."""
    marks = frozenset(label.lower() for label in labels)
    return tuple(
        row for row in _features() if row["title"].search(title) or marks & set(row.get("labels", ()))
    )


def has_feature(stack: Stack, row: dict[str, Any]) -> bool | None:
    """Whether a stack has a feature; None where that is not known."""
    options, needed = stack.options, row.get("models")
    if row.get("asked") or ("off" in row and options is None):
        return None
    if options is not None and "off" in row:
        return not options.keys() & set(row["off"])
    if needed and stack.model and pattern(needed).search(stack.model):
        return True
    found = [_is_set(options, wanted) for wanted in row.get("on", ())] if options is not None else []
    if True in found:
        return True
    if (perhaps := row.get("perhaps")) and stack.model and pattern(perhaps).search(stack.model):
        return None
    is_open = ("on" in row and options is None) or (needed is not None and not stack.model)
    return None if is_open or None in found else False


def _is_set(options: dict[str, str], wanted: str) -> bool | None:
    """Whether an option is set as wanted: `name`, `name=value`, `name>number` or `name~pattern`."""
    found = re.fullmatch(r"([\w-]+)(?:([>=~])(.*))?", wanted)
    name, sign, value = found.groups() if found else (wanted, None, "")
    if name not in options:
        return False
    given = options[name]
    if sign == "~":
        return bool(pattern(value, ignore_case=True).search(given)) if given.strip("{}'\" ") else None
    if sign == ">":
        return given.isdigit() and int(given) > int(value)
    return sign is None or given == value


# ---- the run of a report


@lru_cache(maxsize=1)
def _turned_on_by() -> dict[str, tuple[dict[str, Any], ...]]:
    """By option the features of a run that it turns on; those that say nothing of a failure are left out."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _features():
        if not row.get("is_common") and not row.get("is_incidental"):
            for wanted in row.get("on", ()):
                found[re.split(r"[>=~]", wanted)[0]].append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def difference_of_run(stack: Stack, facts: Facts, title: str, text: str) -> str | None:
    """How the run that a report describes differs from a stack's in what may decide; None if it does not.

    What the report's own remedies set is no part of its run.
    """
    text, tried = text[:TEXT_MAX], " ".join(item.action for item in facts.workarounds)
    for row in _features():
        if row.get("in_text") and has_feature(stack, row) is not True and row["title"].search(text):
            return f"the report speaks of {row['name']}, which yours is not known to have"
    is_ignored = tuple(_table()["run"]["variables"])
    decisive, given = frozenset(_table()["run"]["options"]), stack.options or {}
    for name, value in _settings(title, text):
        if name in tried:
            continue
        if name.startswith("VLLM_"):
            if not name.startswith(is_ignored) and (name, value) != ("VLLM_USE_V1", "1"):
                return f"the report sets {name}: whether yours does is not known"
            continue
        rows = [row for row in _turned_on_by().get(name, ()) if _turns_on(row, name, value)]
        if (rows or name in decisive) and stack.options is None:
            return f"the report sets --{name}: your arguments are not known"
        for row in rows:
            if has_feature(stack, row) is not True:
                return f"the report runs {row['name']}, which yours is not known to have"
        if name in decisive and value.lower() not in {given.get(name, "").lower(), *_OFF}:
            return f"the report sets {f'--{name} {value}'.strip()}, which yours has not"
    return None


def _settings(title: str, text: str) -> Iterator[tuple[str, str]]:
    """What a report sets, and the variables that its title names."""
    yield from ((name, "") for name in _VARIABLE.findall(title))
    for item in read_settings(read_log_document(text)):
        if item.is_chosen:
            yield item.name, item.value
    for match in _OBJECT.finditer(text):
        yield normalise_name(match[1]), match[2]


def _turns_on(row: dict[str, Any], name: str, value: str) -> bool:
    """Whether an option with this value turns a feature on."""
    if value.strip("{}'\" ").lower() in _OFF and value not in {"", "{}"}:
        return False
    mine = [wanted for wanted in row["on"] if re.split(r"[>=~]", wanted)[0] == name]
    return any(_is_set({name: value}, wanted) is not False for wanted in mine)
