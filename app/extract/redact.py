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
NOT_SECRET = frozenset({"None", "none", "null", "EMPTY", "string", "token-abc123", "SecretStr", "os.environ"})
"""What stands in a secret's place in defaults and examples."""


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
        if value in NOT_SECRET or set(value) <= HOLLOW:
            continue
        counts[kind.removesuffix("_2")] += 1
        pieces += [text[at:start], "".join("\n" if char == "\n" else BLOCK for char in value)]
        at = end
    if not pieces:
        return Redacted(text, ())
    return Redacted("".join([*pieces, text[at:]]), tuple(sorted(counts.items())))


def mask_secrets(text: str) -> str:
    """A public text as it may be shown."""
    return redact(text).text


@lru_cache(maxsize=2)
def _table(private: bool) -> Any:
    rows = [row for row in load("secrets")["rule"] if private or not row.get("private")]
    return pattern("|".join(f"(?:{row['pattern']})" for row in rows))
