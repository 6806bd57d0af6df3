"""Features that a failure requires, named in its title or in the run it reports. Pure.

`features.toml` lists them with the options and models that enable each.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from app.extract.fields.settings import read_settings
from app.extract.rules.patterns import PatternSet, pattern
from app.extract.text.blocks import read_log_document
from app.extract.versions import is_before
from app.knowledge.stack.stack import Stack

_OFF = frozenset({"false", "none", "null", "auto", "0"})
PARSER_OPTIONS = {"tool": "tool-call-parser", "reasoning": "reasoning-parser"}
"""The option that selects a parser, by kind of parser."""


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    text = (files(__package__) / "features.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


_RUN = _table()["run"]
USUAL_OPTIONS = frozenset(_RUN["usual"])
"""Options that take effect by default."""
DECISIVE_OPTIONS = frozenset(_RUN["options"])
NEEDS: Mapping[str, str] = _RUN["needs"]
"""By option, the one that it has no effect without."""
TITLED_OPTIONS = USUAL_OPTIONS.union(_RUN["options"], _RUN["titled"])
PARSERS: tuple[str, ...] = tuple(_RUN["parsers"])
"""Parser names that a title may use next to the word "parser"."""


@lru_cache(maxsize=1)
def all_features() -> tuple[dict[str, Any], ...]:
    return tuple({**row, "title": pattern(row["title"])} for row in _table()["feature"])


@lru_cache(maxsize=1)
def _titles() -> PatternSet:
    return PatternSet(row["title"].pattern for row in all_features())


@lru_cache(maxsize=1)
def _text_features() -> tuple[tuple[dict[str, Any], ...], PatternSet]:
    """Return the features to look for in a report's text, and their patterns."""
    rows = tuple(row for row in all_features() if "in_text" in row)
    texts = [row["title"].pattern if row["in_text"] is True else row["in_text"] for row in rows]
    return rows, PatternSet(texts)


@lru_cache(maxsize=16_384)
def features_of(
    title: str, labels: tuple[str, ...], version: str | None = None
) -> tuple[dict[str, Any], ...]:
    """Return the features that a failure of a version requires according to title and labels."""
    named = {*_titles().matching(title)}
    given = {*map(str.lower, labels)}
    rows = [
        row
        for at, row in enumerate(all_features())
        if at in named or not given.isdisjoint(row.get("labels", ()))
    ]
    ids = {row["id"] for row in rows}
    return tuple(row for row in rows if row.get("unless") not in ids and _is_of(row, version))


def _is_of(row: Mapping[str, Any], version: str | None) -> bool:
    return "before" not in row or is_before(version, row["before"])


def has_feature(stack: Stack, row: Mapping[str, Any]) -> bool | None:
    """True if a stack has a feature; None if unknown."""
    options, parts = stack.options, (("models", stack.model), ("gpus", stack.gpu))
    named = [(row[key], name) for key, name in parts if key in row]
    if row.get("asked") or ("off" in row and options is None):
        return None
    if options is not None and "off" in row:
        return not options.keys() & set(row["off"])
    is_usual = "unless_models" in row and not pattern(row["unless_models"]).search(stack.model or "")
    if is_usual or any(name and pattern(needed).search(name) for needed, name in named):
        return True
    found = [_is_set(options, wanted) for wanted in row.get("on", ())] if options is not None else []
    if True in found:
        return True
    if (perhaps := row.get("perhaps")) and stack.model and pattern(perhaps).search(stack.model):
        return None
    is_open = ("on" in row and options is None) or any(not name for _, name in named)
    return None if is_open or None in found else False


def _is_set(options: Mapping[str, str], wanted: str) -> bool | None:
    """True if an option satisfies `name`, `name=value`, `name>number` or `name~pattern`; None if unclear."""
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


def doubt_sentence(row: Mapping[str, Any], title: str) -> str:
    """Return the sentence for a feature that a report names and the stack may or may not have."""
    words = dict.fromkeys(found[0].replace("`", "").strip() for found in row["title"].finditer(title))
    return str(row.get("doubt") or "it matters if yours has {name}").format(
        name=row["name"], words=" and ".join(words) or row["name"]
    )


def features_of_run(
    text: str, settings: Iterable[tuple[str, str]], known: Collection[str], version: str | None
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each feature that the run of a report had, and what shows it; `known`: ids left out."""
    rows, text_matches = _text_features()
    for at in text_matches.matching(text):
        if rows[at]["id"] not in known and _is_of(rows[at], version):
            yield rows[at], "speaks of"
    for name, value in settings:
        for row in _features_by_option().get(name, ()):
            if row["id"] not in known and _enables(row, name, value):
                yield row, "runs"


def settings_of_run(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each setting that the reporter chose and that is not switched off."""
    for item in read_settings(read_log_document(text)):
        if item.is_chosen and (item.value in {"", "{}"} or item.value.strip("{}'\" ").lower() not in _OFF):
            yield item.name, item.value


@lru_cache(maxsize=1)
def _features_by_option() -> dict[str, tuple[dict[str, Any], ...]]:
    """Return features by the option that enables them, without common and incidental ones."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in all_features():
        if not row.get("is_common") and not row.get("is_incidental"):
            for wanted in row.get("on", ()):
                found[re.split(r"[>=~]", wanted)[0]].append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def _enables(row: Mapping[str, Any], name: str, value: str) -> bool:
    """True if an option with this value enables a feature."""
    mine = [wanted for wanted in row["on"] if re.split(r"[>=~]", wanted)[0] == name]
    return any(_is_set({name: value}, wanted) is not False for wanted in mine)
