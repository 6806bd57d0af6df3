"""What a remedy is said to cost: the words of its passage that tell of speed or memory lost."""

from __future__ import annotations

from app.extract.lists import load
from app.extract.patterns import pattern
from app.extract.rules import load_rules

MAX_COST_CHARS = 90
_BEFORE_CHARS = 40


def cost_of(passage: str) -> str | None:
    """The words that name a cost; None where none is named or it is denied ("no performance loss")."""
    denied = pattern(load("cost")["denied"], ignore_case=True)
    for rule in load_rules("cost"):
        for found in rule.pattern.finditer(passage):
            before = passage[max(0, found.start() - _BEFORE_CHARS) : found.start()]
            if not denied.search(before):
                return " ".join(found.group(0).split())[:MAX_COST_CHARS].rstrip(" .-")
    return None
