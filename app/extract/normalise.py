"""Masks a message's variable parts, so that the same failure reads the same on every machine.

In: an error message. Out: the message with numbers, sizes, addresses, paths, ids, shapes and names in
quotes of changing values replaced by `<kind>`. Equal values keep equal placeholders within a message:
the second distinct value of a kind is `<kind2>`. The masks are an ordered table, `lists/masks.toml`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.patterns import pattern

MAX_MESSAGE_CHARS = 400


@lru_cache(maxsize=64)
def mask(message: str) -> str:
    """The message with its variable parts masked and its blanks folded."""
    text = message[:MAX_MESSAGE_CHARS]
    seen: dict[str, dict[str, str]] = {}

    table, kinds = _table()

    def placeholder(found: Any) -> str:
        kind, value = kinds[found.lastindex - 1], found.group(0)
        values = seen.setdefault(kind, {})
        position = len(values) + 1
        return values.setdefault(value, f"<{kind}>" if position == 1 else f"<{kind}{position}>")

    return " ".join(table.sub(placeholder, text).split())


@lru_cache(maxsize=1)
def _table() -> tuple[Any, tuple[str, ...]]:
    """All masks as one pattern with a group each, and the groups' placeholders."""
    rows = load("masks")["rule"]
    return pattern("|".join(f"({row['pattern']})" for row in rows)), tuple(row["value"] for row in rows)
