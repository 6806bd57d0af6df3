"""Rules as data: the format of list files, and their loader.

A list file `lists/<name>.toml` has an array `[[rule]]`; each rule has a stable `id`, a `reason`, a
linear-time `pattern`, a text it must `hit` and one it must `miss`, and keys specific to its list (`value`,
`kind`, …). One test runs all rules against their examples. A `RuleSet` finds in a single pass which of many
rules match a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.rules.patterns import PatternSet, pattern


class RuleSet:
    """Some rules of a list, in its order."""

    def __init__(self, rules: Sequence[Rule], sources: Sequence[str]) -> None:
        self.rules = tuple(rules)
        self._patterns = PatternSet(sources)

    def meeting(self, text: str) -> list[Rule]:
        """Return the rules that match anywhere in the text, in the order of their list."""
        return [self.rules[at] for at in self._patterns.matching(text)]


@lru_cache(maxsize=64)
def load_rule_set(name: str, key: str = "", *values: str) -> RuleSet:
    """Load the rules of one list as a set; with `key`, only those whose entry there is one of `values`.

    An entry that is a list (`steps`) matches if it contains one of the values.
    """
    rules, sources = [], []
    for rule, row in zip(load_rules(name), load(name).get("rule", ()), strict=True):
        entry = row.get(key, "") if key else ""
        if key and not set(values) & set(entry if isinstance(entry, list) else [entry]):
            continue
        rules.append(rule)
        sources.append(f"(?i){row['pattern']}" if row.get("ignore_case") else row["pattern"])
    return RuleSet(rules, sources)


KNOWN_KEYS = frozenset({"id", "reason", "pattern", "hit", "miss", "ignore_case"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `extra` holds the keys specific to its list."""

    id: str
    reason: str
    pattern: Any
    hit: str
    miss: str
    extra: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.extra[key]


@lru_cache(maxsize=64)
def load_rules(name: str) -> tuple[Rule, ...]:
    """Load the rules of one list, in the order of the file.

    Raises:
        KeyError: a rule lacks one of the five required keys.
        re2.error: a pattern is not linear-time syntax.
    """
    rules = []
    for row in load(name).get("rule", ()):
        extra = {key: value for key, value in row.items() if key not in KNOWN_KEYS}
        compiled = pattern(row["pattern"], ignore_case=row.get("ignore_case", False))
        rules.append(Rule(row["id"], row["reason"], compiled, row["hit"], row["miss"], extra))
    return tuple(rules)
