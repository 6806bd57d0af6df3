"""What a failure needs of a stack: features that its title or its report's own run names. Pure.

`features.toml` lists them with the options and models that turn each on.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any

from app.extract.facts import Facts
from app.extract.fields.settings import normalise_name, read_settings
from app.extract.rules.patterns import pattern, pattern_set
from app.extract.text.blocks import read_log_document
from app.knowledge.stack.stack import Stack

TEXT_MAX = 40_000
"""Code points of a report that are searched for the options of its run."""
_OFF = frozenset({"false", "none", "null", "auto", "0"})
_NAMED_SETTING = pattern(r"\b[A-Z][A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20}){1,6}\b")
"""A variable or a value of an option, in a title."""
_PARAMETER = pattern(r"\b([a-z]+(?:_[a-z]+)+) ?[=:] ?[\"']?\w")
"""A parameter that a title sets."""
_PARSERS = {"tools": "tool-call-parser", "reasoning": "reasoning-parser"}
"""The option that decides, by the feature that a failure is of."""
_OBJECT = pattern(
    r"\b((?:speculative|kv_transfer|compilation)_config)['\"]?\s{0,2}[=:]\s{0,2}(\{[^\n]{0,200})"
)


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    text = (files(__package__) / "features.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=1)
def _features() -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            **row,
            "title": pattern(row["title"]),
            "in_text": pattern(row["title"] if row["in_text"] is True else row["in_text"])
            if "in_text" in row
            else None,
        }
        for row in _table()["feature"]
    )


@lru_cache(maxsize=1)
def _titles() -> Any:
    return pattern_set([row["title"] for row in _table()["feature"]])


@lru_cache(maxsize=1)
def _labelled() -> Mapping[str, frozenset[int]]:
    """The places of the features that each label names."""
    places: dict[str, set[int]] = defaultdict(set)
    for at, row in enumerate(_features()):
        for label in row.get("labels", ()):
            places[label].add(at)
    return {label: frozenset(found) for label, found in places.items()}


@lru_cache(maxsize=16_384)
def features_of(title: str, labels: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """The features that a failure needs, by its title and labels."""
    named = set(_titles().Match(title) or ())
    for label in labels:
        named |= _labelled().get(label.lower(), frozenset())
    return tuple(_features()[at] for at in sorted(named))


def has_feature(stack: Stack, row: dict[str, Any]) -> bool | None:
    """Whether a stack has a feature; None where that is not known."""
    options, parts = stack.options, (("models", stack.model), ("gpus", stack.gpu))
    named = [(row[key], name) for key, name in parts if key in row]
    if row.get("asked") or ("off" in row and options is None):
        return None
    if options is not None and "off" in row:
        return not options.keys() & set(row["off"])
    if any(name and pattern(needed).search(name) for needed, name in named):
        return True
    found = [_is_set(options, wanted) for wanted in row.get("on", ())] if options is not None else []
    if True in found:
        return True
    if (perhaps := row.get("perhaps")) and stack.model and pattern(perhaps).search(stack.model):
        return None
    is_open = ("on" in row and options is None) or any(not name for _, name in named)
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


def difference_of_run(
    stack: Stack, facts: Facts, title: str, labels: tuple[str, ...], text: str
) -> str | None:
    """How the run that a report describes differs from a stack's in what may decide; None if it does not.

    What the report's own remedies set is no part of its run.
    """
    text, tried = text[:TEXT_MAX], " ".join(item.action for item in facts.workarounds)
    for row in _features():
        if row["in_text"] and has_feature(stack, row) is not True and row["in_text"].search(text):
            return row.get("doubt") or f"the report speaks of {row['name']}: it matters if yours has that"
    mine = (stack.args or "").lower().replace("-", "_")
    for name in chain(_NAMED_SETTING.findall(title), _PARAMETER.findall(title)):
        if name.lower() not in mine and name not in tried:
            return f"its title names {name}: it matters if yours has that"
    named = {row["id"] for row in features_of(title, labels)}
    settings = [(name, value) for name, value in _settings(text) if name not in tried]
    for row_id, option in _PARSERS.items():
        theirs = next((value for name, value in settings if name == option), "")
        if row_id in named and theirs and theirs != (stack.options or {}).get(option):
            return f"the report runs --{option} {theirs}: yours is not known to"
    return next(filter(None, (_difference(stack, name, value) for name, value in settings)), None)


def _difference(stack: Stack, name: str, value: str) -> str | None:
    """How one setting of a report's run differs from a stack's; None where that decides nothing."""
    run, given = _table()["run"], stack.options or {}
    if name.startswith("VLLM_"):
        is_usual = name.startswith(tuple(run["variables"])) or (name, value) == ("VLLM_USE_V1", "1")
        return None if is_usual else f"the report sets {name}: it matters if yours does"
    rows = [row for row in _turned_on_by().get(name, ()) if _turns_on(row, name, value)]
    is_decisive = name in run["options"]
    if (rows or is_decisive) and stack.options is None:
        return f"the report sets --{name}: your arguments are not known"
    if row := next((row for row in rows if has_feature(stack, row) is not True), None):
        return f"the report runs {row['name']}: it matters if yours does"
    if is_decisive and value.lower() not in {given.get(name, "").lower(), *_OFF}:
        return f"the report sets {f'--{name} {value}'.strip()}, which yours has not"
    return None


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """What a report sets."""
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
