"""All patterns of a list tried in one pass.

A list's patterns, as one automaton, tell in a single linear pass which of them a text meets; only those are
then asked where. A sentence that meets none costs one pass instead of one per rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from app.extract.lists import load
from app.extract.patterns import pattern_set
from app.extract.rules import Rule, load_rules


class RuleSet:
    """Some rules of a list, in its order."""

    def __init__(self, rules: Sequence[Rule], sources: Sequence[str]) -> None:
        self.rules = tuple(rules)
        self._set = pattern_set(sources)

    def meeting(self, text: str) -> list[Rule]:
        """The rules whose pattern is found somewhere in the text, in the order of their list."""
        return [self.rules[at] for at in sorted(self._set.Match(text) or ())]


@lru_cache(maxsize=64)
def load_rule_set(name: str, key: str = "", *values: str) -> RuleSet:
    """The rules of one list as a set; with `key` those whose entry there is one of `values`.

    An entry that is a list (`steps`) counts if it holds one of the values.
    """
    rules, sources = [], []
    for rule, row in zip(load_rules(name), load(name).get("rule", ()), strict=True):
        entry = row.get(key, "") if key else ""
        if key and not set(values) & set(entry if isinstance(entry, list) else [entry]):
            continue
        rules.append(rule)
        sources.append(f"(?i){row['pattern']}" if row.get("ignore_case") else row["pattern"])
    return RuleSet(rules, sources)
