"""Rules as data: what a list file may hold and how it is read.

A list file `lists/<name>.toml` has an array `[[rule]]`; each rule has a stable `id`, a `reason`, a
linear-time `pattern`, a text it must `hit` and one it must `miss`, and what its list adds (`value`,
`kind`, …). One test runs all of them against their examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.patterns import pattern

KNOWN_KEYS = frozenset({"id", "reason", "pattern", "hit", "miss", "ignore_case"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `extra` holds the keys that only its list knows."""

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
    """The rules of one list, in the order of the file.

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
