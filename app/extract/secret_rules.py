"""The rules that find secrets, ready for use, and what only stands in a secret's place.

In: `lists/secrets.toml`. Out: `rules()`; `is_stand_in` for a value that a rule found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from app.extract.lists import load
from app.extract.patterns import escape, pattern

BLOCK = "█"

_HOLLOW = frozenset(BLOCK + "*xX.<>$-_")
"""Signs that blot a value out."""
_SUFFIX = re.compile(r"_\d$")
_BETWEEN_WORDS = re.compile(r"[-_:. ]")


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One or several joined rules; `slots` are those of its groups, see `Rules`."""

    pattern: Any
    slots: tuple[int, ...]
    is_mixed: bool
    not_after: bytes
    spares: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules: `lines` read the lines in which one of `any_of` meets, `whole` and `private` the whole text.

    Every group has a slot; of two secrets that begin at the same place that of the lower slot is counted.
    `kinds` are those of the slots.
    """

    any_of: tuple[Any, ...]
    lines: tuple[SecretRule, ...]
    whole: tuple[SecretRule, ...]
    private: tuple[SecretRule, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _StandIns:
    any_of: Any
    whole: frozenset[str]
    words: frozenset[str]
    reference: Any
    user_names: frozenset[str]
    addresses: Any


def may_be_stand_ins(values: Sequence[bytes]) -> set[bytes]:
    """The values for which `is_stand_in` is worth asking: one look at all is cheaper than one at each."""
    return {found.group() for found in _stand_ins().any_of.finditer(b"\n".join(values))}


@lru_cache(maxsize=4096)
def is_stand_in(value: str, kind: str) -> bool:
    """Whether a value of a kind is no secret but what stands in its place in defaults, examples and code."""
    if set(value) <= _HOLLOW:
        return True
    known = _stand_ins()
    lowered = value.lower()
    if kind == "user_name":
        return lowered.partition("@")[0] in known.user_names
    if kind == "ip_address":
        return known.addresses.fullmatch(value) is not None
    if kind == "email":
        return lowered.startswith("git@")
    if lowered in known.whole or known.reference.fullmatch(lowered) is not None:
        return True
    return all(word in known.words or set(word) <= _HOLLOW for word in _BETWEEN_WORDS.split(lowered))


@lru_cache(maxsize=1)
def _stand_ins() -> _StandIns:
    known = load("secrets")["stand_in"]
    word = f"(?:{_one_of(known['words'])}|[{escape(''.join(sorted(_HOLLOW)))}]*)"
    names = f"(?:{_one_of([*known['user_names'], 'git'])})(?:@.*)?"
    words = f"{word}(?:[-_:. ]{word})*"
    rest = (_one_of(known["whole"]), words, known["reference"], names, known["addresses"])
    return _StandIns(
        pattern(f"(?mi)^(?:{'|'.join(rest)})$"), frozenset(known["whole"]), frozenset(known["words"]),
        pattern(known["reference"]), frozenset(known["user_names"]), pattern(known["addresses"]),
    )  # fmt: skip


def _one_of(words: Iterable[str]) -> str:
    return "|".join(map(escape, words))


@lru_cache(maxsize=1)
def rules() -> Rules:
    """All rules of the list."""
    rows = load("secrets")["rule"]
    public = [row for row in rows if not row.get("private")]
    lines = [row for row in public if not row.get("whole")]
    parts = [
        _joined(lines), _joined(row for row in public if row.get("whole")),
        _joined(row for row in rows if row.get("private")),
    ]  # fmt: skip
    kinds: list[str] = []
    compiled: dict[tuple[int, int], SecretRule] = {}
    for rank in range(max(map(len, parts))):
        for part, joined in enumerate(parts):
            if rank < len(joined):
                compiled[part, rank] = _one_rule(joined[rank], kinds)
    of_lines, of_whole, of_private = (
        tuple(compiled[part, rank] for rank in range(len(joined))) for part, joined in enumerate(parts)
    )
    return Rules(_any_of(lines), of_lines, of_whole, of_private, tuple(kinds))


def _any_of(rows: Iterable[dict[str, Any]]) -> tuple[Any, ...]:
    """All rules as a few patterns, each from a rule that stands `apart` to the next."""
    texts: list[list[str]] = [[]]
    for row in rows:
        if row.get("apart"):
            texts.append([])
        texts[-1].append(re.sub(r"\?P<\w+>", "?:", row["pattern"]))
    return tuple(pattern("|".join(together)) for together in texts)


def _joined(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rules, those that stand next to each other and are `joined` by the same name together."""
    numbered = enumerate(rows)
    return [
        [row for _, row in group]
        for _, group in groupby(numbered, key=lambda item: item[1].get("joined") or item[0])
    ]


def _one_rule(rows: Sequence[dict[str, Any]], kinds: list[str]) -> SecretRule:
    """Rules as one; the kinds of its groups are appended to `kinds`."""
    first = len(kinds)
    parts: list[str] = []
    for row in rows:
        kinds += (_SUFFIX.sub("", name) for name in re.findall(r"\?P<(\w+)>", row["pattern"]))
        parts.append(re.sub(r"\?P<\w+>", "", row["pattern"]))
    row = rows[0]
    return SecretRule(
        pattern("|".join(parts)), tuple(range(first, len(kinds))), row.get("mixed", False),
        row.get("not_after", "").encode(), row.get("spares", ""),
    )  # fmt: skip
