"""Masks secrets with blocks of equal length, so that offsets and lines stay true.

In: any text that will be shown, answered or kept. Out: the masked text and what was masked, by kind.
The rules are `lists/secrets.toml`. A public issue is masked for secrets only; a pasted log for what
names a person or a host as well.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.patterns import pattern

BLOCK = "█"

HOLLOW = frozenset(BLOCK + "*xX.<>$-")
STAND_INS = frozenset({"none", "null", "empty", "string", "token-abc123", "secretstr", "placeholder"})
"""What stands in a secret's place in defaults and examples, in lower case."""
STAND_IN_HEADS = ("$", "os.environ", "os.getenv", "your_", "your-", "my_", "<your", "{{", "%")
"""A reference to a secret, or an invitation to put one in."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """The masked text, and how often each kind of secret stood in it."""

    text: str
    counts: tuple[tuple[str, int], ...]


def redact(text: str, *, private: bool = False) -> Redacted:
    """Mask secrets.

    Args:
        private: mask addresses of hosts and people too, as is due to a log that is not public.
    """
    counts: Counter[str] = Counter()
    pieces: list[str] = []
    at = 0
    table = _table(private)
    kinds = {index: name for name, index in table.groupindex.items()}
    for found in table.finditer(text):
        kind = kinds[found.lastindex]
        start, end = found.span(found.lastindex)
        value = text[start:end]
        if _is_stand_in(value):
            continue
        counts[kind.removesuffix("_2")] += 1
        pieces += [text[at:start], "".join("\n" if char == "\n" else BLOCK for char in value)]
        at = end
    if not pieces:
        return Redacted(text, ())
    return Redacted("".join([*pieces, text[at:]]), tuple(sorted(counts.items())))


def _is_stand_in(value: str) -> bool:
    lowered = value.lower()
    return lowered in STAND_INS or lowered.startswith(STAND_IN_HEADS) or set(value) <= HOLLOW


def mask_secrets(text: str) -> str:
    """A public text as it may be shown."""
    return redact(text).text


@lru_cache(maxsize=2)
def _table(private: bool) -> Any:
    rows = [row for row in load("secrets")["rule"] if private or not row.get("private")]
    return pattern("|".join(f"(?:{row['pattern']})" for row in rows))
