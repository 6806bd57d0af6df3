"""Faults outside Python: what kernels, compilers, shells, installers and parsers print.

In: a line. Out: an `ErrorRecord` by the rules of `lists/native.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from app.extract.log.error_lines import MAX_MESSAGE_CHARS, is_change
from app.extract.log.lines import LogLine
from app.extract.log.process_stream import ErrorRecord, invalid_reason
from app.extract.rules.patterns import escape, pattern
from app.extract.rules.rules import Rule, RuleSet, load_rules

ANSWER = "native.answer"
"""The rule of what a server answers to a request."""
_ANSWER_TYPE = pattern(r"""["']?type["']?[:=] ?["']([A-Za-z]\w{3,60})["']""")
_ESCAPED = pattern(r"\\(.)")
_LOGGED_AT = pattern(r" ([\w.+-]{3,60}\.cpp:\d{1,6})\]")


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
    return RuleSet(rules, ["|".join(escape(guard) for guard in rule["guards"]) for rule in rules])


def is_guarded(text: str, rules: FaultRules) -> bool:
    """Whether any rule is worth trying on a line."""
    for guard in rules.guards:  # noqa: SIM110  a generator would cost more than the look itself
        if guard in text:
            return True
    return False


def find_fault(line: LogLine, rules: tuple[Rule, ...]) -> ErrorRecord | None:
    """The first fault that the rules find in a line."""
    for rule in rules:
        if not any(guard in line.text for guard in rule["guards"]):
            continue
        found = rule.pattern.search(line.text)
        if found and not is_change(line.text):
            groups = found.groupdict()
            place = groups.get("frame")
            if place is None and rule.id == "native.watchdog" and (at := _LOGGED_AT.search(line.raw[:400])):
                place = at.group(1)  # the watchdog's own check: there is no other place
            kind, message = groups.get("type"), groups.get("message") or ""
            if rule.id == ANSWER:
                kind, message = _answered(line.text, groups)
            return ErrorRecord(
                rule["type"] or kind,
                message.strip()[:MAX_MESSAGE_CHARS],
                line,
                native=True,
                frame=place,
                rule=rule.id,
                weak=int(rule.extra.get("weak", 0)),
            )
    return None


def _answered(text: str, groups: dict[str, str | None]) -> tuple[str | None, str]:
    """Class and message of a server's answer; of a message over several lines the one with the reason."""
    words = next((words for name, words in groups.items() if words and name != "type"), "")
    first, *below = _ESCAPED.sub(
        lambda found: "\n" if found.group(1) == "n" else found.group(1), words
    ).split("\n")
    reasons = filter(None, map(invalid_reason, below)) if "validation error" in first else iter(())
    kinds = [found.group(1) for found in _ANSWER_TYPE.finditer(text)]
    return kinds[-1] if kinds else None, next(reasons, first)
