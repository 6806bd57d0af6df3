"""Every rule of every list against its own examples; all patterns of a list, and plain words, in one pass."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rule_set, load_rules
from tests.rows import over_rows

LISTS = ("regression", "versions", "kind", "cause", "stated_fix", "related")


@pytest.mark.parametrize("name", LISTS)
def test_a_set_meets_what_its_rules_meet_one_by_one(name: str) -> None:
    rules = load_rules(name)
    for text in (rule.hit for rule in rules):
        alone = [rule.id for rule in rules if rule.pattern.search(text)]
        assert [rule.id for rule in load_rule_set(name).meeting(text)] == alone


def test_a_set_holds_only_the_rules_asked_for() -> None:
    parts = {rule["part"] for rule in load_rule_set("regression", "part", "culprit", "fixed").rules}
    assert parts == {"culprit", "fixed"}


def test_a_text_that_meets_nothing_meets_nothing() -> None:
    assert load_rule_set("related").meeting("") == []


LISTS_RULES = sorted(
    item.name.removesuffix(".toml")
    for item in files("app.extract.lists").iterdir()
    if item.name.endswith(".toml")
)


def rows_of(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(
        (files("app.extract.lists") / f"{name}.toml").read_text("utf-8")
    ).get("rule", [])
    return rows


ROWS = [row for name in LISTS_RULES for row in rows_of(name)]


def compiled(row: dict[str, Any]) -> Any:
    return pattern(row["pattern"], ignore_case=row.get("ignore_case", False))


def test_there_are_rules() -> None:
    assert len(ROWS) > 100


@pytest.mark.parametrize("name", LISTS_RULES)
def test_a_list_loads(name: str) -> None:
    assert [rule.id for rule in load_rules(name)] == [row["id"] for row in rows_of(name)]


@over_rows("row", ROWS, label=lambda row: str(row.get("id")))
def test_a_rule_has_what_every_rule_needs(row: dict[str, Any]) -> None:
    needed = {"id", "reason", "pattern", "hit", "miss"}
    assert {key for key in needed if isinstance(row.get(key), str) and row[key].strip()} == needed


@over_rows("row", ROWS, label=lambda row: str(row.get("id")))
def test_a_rule_s_id_is_a_dotted_name(row: dict[str, Any]) -> None:
    assert pattern(r"^[a-z][a-z0-9_]*\.[a-z0-9_]+(?:\.[a-z0-9_]+)*$").match(row["id"]) is not None


@over_rows("row", ROWS, label=lambda row: str(row.get("id")))
def test_a_rule_hits_its_example(row: dict[str, Any]) -> None:
    assert compiled(row).search(row["hit"]) is not None


@over_rows("row", ROWS, label=lambda row: str(row.get("id")))
def test_a_rule_misses_its_counter_example(row: dict[str, Any]) -> None:
    assert compiled(row).search(row["miss"]) is None


@over_rows("row", ROWS, label=lambda row: str(row.get("id")))
def test_a_rule_s_example_holds_what_the_rule_asks_for_first(row: dict[str, Any]) -> None:
    """A list may name plain words that must stand in a text before the pattern is tried."""
    for key in ("needs", "guards", "words"):
        if row.get(key):
            hit = row["hit"].lower() if key == "words" else row["hit"]
            assert [word for word in row[key] if word in hit] != []


def test_ids_are_unique_over_all_lists() -> None:
    counts = Counter(row["id"] for name in LISTS_RULES for row in rows_of(name))

    assert [key for key, count in counts.items() if count > 1] == []
