"""All patterns of a list tried in one pass."""

from __future__ import annotations

import pytest

from app.extract.rule_sets import load_rule_set
from app.extract.rules import load_rules

LISTS = ("regression", "versions", "kind", "cause", "fix_said", "related")


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
