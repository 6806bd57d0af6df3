"""An answer made to fit a budget of characters: what matters least goes first, in whole entries.

In: an answer as JSON-able values, the order in which its parts may go (`CutOrder`), and the most characters
its JSON may take as it is sent. Out: the answer, or a shortened one with `truncated: {field: left}`, which
says how many entries of a list, or characters of a text, were left out; `"*"` counts fields that were left
out whole. A shortened answer keeps the types of the full one.
The orders stand in `budget_rules.toml`.
"""

from __future__ import annotations

import json
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = Any
Answer = dict[str, Json]

MIN_CHARS = 200
"""The smallest budget: every `CutOrder` must have its `keeps` in it, and `truncated` beside them."""
MAX_CHARS = 1_000_000
TRUNCATED = "truncated"
WHOLE_FIELDS = "*"


@dataclass(frozen=True, slots=True)
class Cut:
    """One thing that may be shortened, in units of which each can go by itself, the last one first.

    `field` is a field of the answer: of a list the entries go, of a text its end. `graph.edges` is a list in
    an object. `matches.excerpt` is a field of a list's entries, and is emptied entry by entry: it must be a
    list, a text, or an object that may be null. At least `keep` units stay. With `whole` the field is emptied
    at once: a text of which a part is useless, or an object that may be null.
    """

    field: str
    keep: int = 0
    whole: bool = False

    @property
    def name(self) -> str:
        """The answer's field that is changed."""
        return self.field.partition(".")[0]

    def units(self, value: Json) -> int:
        """How many units the value of the answer's field has."""
        if self.whole:
            return int(bool(value))
        part = self._list_in(value)
        return len(part) if isinstance(part, list | str) else 0

    def cut(self, value: Json, kept: int) -> Json:
        """The value with its first `kept` units."""
        inner = self._inner
        if self.whole:
            return value if kept else _emptied(value)
        if isinstance(value, str):
            return cut_text(value, kept)
        if isinstance(value, dict):
            return {**value, inner: value[inner][:kept]}
        if not inner:
            return value[:kept]
        return value[:kept] + [
            {**entry, inner: _emptied(entry[inner])} if inner in entry else entry for entry in value[kept:]
        ]

    def left(self, original: Json, before: Json, after: Json) -> int:
        """What `truncated` counts: of a list or text since the original, of the rest since the last cut."""
        if self.whole:
            return _count(before) - _count(after)
        if self._inner and isinstance(before, list):
            counts = (_count(entry.get(self._inner)) for entry in before)
            return sum(counts) - sum(_count(entry.get(self._inner)) for entry in after)
        return len(self._list_in(original)) - len(self._list_in(after))

    @property
    def _inner(self) -> str:
        return self.field.partition(".")[2]

    def _list_in(self, value: Json) -> Json:
        return value.get(self._inner) if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class CutOrder:
    """In which order the parts of one kind of answer may go.

    Args:
        keeps: fields that always stay; short ones.
        cuts: what is shortened, the least needed first.
        ranked: the fields from the most needed on, those not named here after them: where the cuts do not
            suffice, fields stay in this order as long as there is room.
    """

    keeps: tuple[str, ...]
    cuts: tuple[Cut, ...]
    ranked: tuple[str, ...] = ()


def _read_orders() -> dict[str, CutOrder]:
    rules = tomllib.loads(Path(__file__).with_name("budget_rules.toml").read_text(encoding="utf-8"))
    return {
        schema: CutOrder(
            tuple(rule["keeps"]), tuple(Cut(**cut) for cut in rule["cuts"]), tuple(rule["ranked"])
        )
        for rule in rules.values()
        for schema in rule["schemas"]
    }


ORDERS = _read_orders()
"""By the name of the answer's schema."""


def dumps(value: Json) -> str:
    """JSON as it is sent: no blanks, no escapes that UTF-8 does not need."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def fit(
    answer: Answer, order: CutOrder, max_chars: int, *, cursor_at: Callable[[int], str] | None = None
) -> Answer:
    """The answer, shortened where its JSON would be longer than `max_chars`.

    Args:
        answer: JSON-able values.
        order: in which order its parts may go.
        max_chars: at least MIN_CHARS.
        cursor_at: for a list with `items` and `next_cursor`: the cursor of the page after so many items. The
            items that were left out then begin the next page.
    """
    if len(dumps(answer)) <= max_chars:
        return answer
    short, truncated = dict(answer), dict[str, int]()
    count = len(answer.get("items") or ())
    if cursor_at is not None:  # room for the longest
        short["next_cursor"] = max((cursor_at(at) for at in range(count + 1)), key=len)
    for cut in order.cuts:
        short, truncated, fits = _shorten(short, truncated, cut, answer, max_chars)
        if fits:
            break
    else:
        short, truncated = _choose(short, truncated, order, max_chars)
    if cursor_at is not None:
        kept = len(short.get("items") or ())
        after_all = answer.get("next_cursor")
        short["next_cursor"] = after_all if kept == count else cursor_at(kept) if kept else None
    return {**short, TRUNCATED: truncated} if truncated else short


def cut_text(text: str, max_chars: int) -> str:
    """The beginning of a text, at most so long: up to the end of a line, or of a word."""
    if len(text) <= max_chars:
        return text
    at = max(text.rfind("\n", 0, max_chars + 1), 0)
    if at < max_chars // 2:
        at = max(text.rfind(" ", 0, max_chars + 1), at)
    return text[:at].rstrip()


def _shorten(
    short: Answer, truncated: dict[str, int], cut: Cut, original: Answer, max_chars: int
) -> tuple[Answer, dict[str, int], bool]:
    """Take a cut as far as it must go for the answer to fit, or as it may; and whether it fits then."""
    before = short.get(cut.name)
    units = cut.units(before)
    if units <= cut.keep:
        return short, truncated, False
    others = len(dumps({name: value for name, value in short.items() if name != cut.name}))
    counts = {field: left for field, left in truncated.items() if field != cut.field}

    def attempt(kept: int) -> tuple[Json, dict[str, int], bool]:
        after = cut.cut(before, kept)
        left = cut.left(original[cut.name], before, after)
        now = {**counts, cut.field: left} if left else counts
        return after, now, others + _length({cut.name: after}, now) - 1 <= max_chars

    after, left, fits = attempt(cut.keep)
    if fits:
        most = min(units - 1, max_chars)  # a unit takes a character at least
        more = bisect_left(range(cut.keep + 1, most + 1), True, key=lambda kept: not attempt(kept)[2])
        after, left, _ = attempt(cut.keep + more)
    return {**short, cut.name: after}, left, fits


def _choose(
    short: Answer, truncated: dict[str, int], order: CutOrder, max_chars: int
) -> tuple[Answer, dict[str, int]]:
    """Leave out whole fields: of those that need not stay, only the most needed that fit stay."""

    def only(names: Collection[str]) -> tuple[Answer, dict[str, int]]:
        chosen = {name: value for name, value in short.items() if name in names}
        counts = {field: left for field, left in truncated.items() if field.partition(".")[0] in chosen}
        gone = len(short) - len(chosen)
        return chosen, {**counts, WHOLE_FIELDS: gone} if gone else counts

    names = set(order.keeps)
    for name in [*order.ranked, *(name for name in short if name not in order.ranked)]:
        if name in short and _length(*only({*names, name})) <= max_chars:
            names.add(name)
    return only(names)


def _length(answer: Answer, truncated: dict[str, int]) -> int:
    return len(dumps({**answer, TRUNCATED: truncated} if truncated else answer))


def _count(value: Json) -> int:
    return len(value) if isinstance(value, list | str) else int(bool(value))


def _emptied(value: Json) -> Json:
    return [] if isinstance(value, list) else "" if isinstance(value, str) else None
