"""Faults that no Python traceback tells: what kernels, compilers, shells, installers and parsers print.

In: a line's text. Out: a `Fault` by the rules of `lists/native.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from app.extract.log.error_lines import MAX_MESSAGE_CHARS, is_change
from app.extract.rules.rules import Rule, RuleSet, load_rules


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule read: `place` is file and line as printed."""

    type: str | None
    message: str
    place: str | None
    rule: str
    weak: int


@dataclass(frozen=True, slots=True)
class FaultRules:
    """The rules that can hit anything in a text, early and late ones apart; and all their guards."""

    early: tuple[Rule, ...]
    late: tuple[Rule, ...]
    guards: tuple[str, ...]


def fault_rules(text: str) -> FaultRules | None:
    """The rules that can hit anything in a text: one look at the whole is cheaper than one at each line."""
    rules = _guards().meeting(text)
    if not rules:
        return None
    late = tuple(rule for rule in rules if rule.extra.get("late", False))
    early = tuple(rule for rule in rules if not rule.extra.get("late", False))
    return FaultRules(early, late, tuple(dict.fromkeys(guard for rule in rules for guard in rule["guards"])))


@lru_cache(maxsize=1)
def _guards() -> RuleSet:
    rules = load_rules("native")
    return RuleSet(rules, ["|".join(literal(guard) for guard in rule["guards"]) for rule in rules])


def literal(words: str) -> str:
    """Plain words as a pattern."""
    return "".join(sign if sign.isalnum() or sign in " _'\"`<:-" else f"\\{sign}" for sign in words)


def is_guarded(text: str, rules: FaultRules) -> bool:
    """Whether any rule is worth trying on a line."""
    for guard in rules.guards:  # noqa: SIM110  a generator would cost more than the look itself
        if guard in text:
            return True
    return False


def fault(text: str, rules: tuple[Rule, ...]) -> Fault | None:
    """The fault that a line tells."""
    for rule in rules:
        if not any(guard in text for guard in rule["guards"]):
            continue
        found = rule.pattern.search(text)
        if found and not is_change(text):
            groups = found.groupdict()
            message = (groups.get("message") or "").strip()[:MAX_MESSAGE_CHARS]
            kind = rule["type"] or groups.get("type")
            return Fault(kind, message, groups.get("frame"), rule.id, int(rule.extra.get("weak", 0)))
    return None
