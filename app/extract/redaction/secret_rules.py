"""The rules that find secrets, ready for use, and the placeholders that only stand in a secret's place.

In: `lists/secrets.toml`. Out: `load_secret_rules()`; `is_placeholder` for a value that a rule found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from app.extract.lists import load
from app.extract.rules.patterns import pattern

_HOLLOW = frozenset("█*xX.<>$-_")
"""Signs that blot a value out."""
_BETWEEN_WORDS = re.compile(r"[-_:. ]")
_GROUP = re.compile(r"\?P<(\w+?)(?:_\d)?>")


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One or several joined rules; `kinds` are those of its groups, of which one takes part in a match."""

    pattern: Any
    kinds: tuple[str, ...]
    is_mixed: bool
    not_after: str
    spares: str


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are worth trying where `any_of`, which is all of them in one, meets."""

    any_of: Any
    rules: tuple[SecretRule, ...]


@dataclass(frozen=True, slots=True)
class SecretRules:
    """`lines` read lines, `whole` key blocks, `private` names of people and hosts in logs."""

    lines: tuple[RuleGroup, ...]
    whole: tuple[SecretRule, ...]
    private: tuple[SecretRule, ...]


@lru_cache(maxsize=1)
def load_secret_rules() -> SecretRules:
    """All rules of the list."""
    rows = load("secrets")["rule"]
    groups: list[list[dict[str, Any]]] = [[]]
    for row in rows:
        if row.get("apart"):
            groups.append([])
        if not row.get("private") and not row.get("whole"):
            groups[-1].append(row)
    return SecretRules(
        tuple(
            RuleGroup(pattern("|".join(_GROUP.sub("?:", row["pattern"]) for row in group)), _joined(group))
            for group in groups
        ),
        _joined(row for row in rows if row.get("whole")),
        _joined(row for row in rows if row.get("private")),
    )


def _joined(rows: Iterable[dict[str, Any]]) -> tuple[SecretRule, ...]:
    """The rules; those that stand next to each other and are `joined` by the same name as one."""
    groups = groupby(rows, key=lambda row: row.get("joined") or row["id"])
    return tuple(_one_rule(list(group)) for _, group in groups)


def _one_rule(rows: list[dict[str, Any]]) -> SecretRule:
    text = "|".join(row["pattern"] for row in rows)
    return SecretRule(
        pattern(_GROUP.sub("", text)),
        tuple(_GROUP.findall(text)),
        rows[0].get("mixed", False),
        rows[0].get("not_after", ""),
        rows[0].get("spares", ""),
    )


@lru_cache(maxsize=4096)
def is_placeholder(value: str, kind: str) -> bool:
    """Whether a value of a kind is no secret but what stands in its place in defaults, examples and code."""
    if set(value) <= _HOLLOW:
        return True
    known = load("secrets")["stand_in"]
    lowered = value.lower()
    if (names := known["names"].get(kind)) is not None:
        return all(word.partition("@")[0] in names for word in lowered.split())
    if kind == "ip_address":
        return pattern(known["addresses"]).fullmatch(value) is not None
    if kind == "email":
        return lowered.startswith("git@")
    if lowered in known["whole"] or pattern(known["reference"]).fullmatch(lowered) is not None:
        return True
    words = _placeholder_words()
    return all(word in words or set(word) <= _HOLLOW for word in _BETWEEN_WORDS.split(lowered))


@lru_cache(maxsize=1)
def _placeholder_words() -> frozenset[str]:
    return frozenset(load("secrets")["stand_in"]["words"])
