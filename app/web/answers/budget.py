"""Shorten an answer to a budget of characters, dropping the least important entries first.

Input: an answer as JSON-compatible values, the order in which parts may be cut (`CutOrder`), and the maximum
length of its serialized JSON. Output: the answer, or a shortened one with `truncated: {field: count}`, the
number of list entries or text characters left out; `"*"` counts fields left out entirely. A shortened answer
keeps the types of the full one.
The orders are in `budget_rules.toml`.
"""

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
"""The smallest budget: the `keeps` of every `CutOrder` and `truncated` must fit into it."""
MAX_CHARS = 1_000_000
TRUNCATED = "truncated"
WHOLE_FIELDS = "*"


@dataclass(frozen=True, slots=True)
class Cut:
    """A field that may be shortened from its end, to `keep` entries of a list or characters of a text.

    `graph.edges` is a list in an object. `matches.excerpt` is a field of a list's entries, emptied entry by
    entry: it must be a list, a text, or a nullable object. An object is left out at once. Of a list, the
    first entry that has the field `rather` takes the last place that stays if none before it has it.
    """

    field: str
    keep: int = 0
    rather: str = ""

    def units(self, answer: Answer) -> int:
        """Return how many entries or characters there are to cut from."""
        name, _, inner = self.field.partition(".")
        value = answer.get(name)
        return _count(value.get(inner) if inner and isinstance(value, dict) else value)

    def shorten(self, answer: Answer, kept: int) -> Answer:
        """Return the answer with the first `kept` units of the field; `truncated` counts the rest."""
        name, _, inner = self.field.partition(".")
        before = answer[name]
        if inner and isinstance(before, list):
            after: Json = before[:kept] + [
                {**entry, inner: _first(entry[inner], 0)} if inner in entry else entry
                for entry in before[kept:]
            ]
        else:
            after = {**before, inner: _first(before[inner], kept)} if inner else _first(before, kept)
            if self.rather and after and not any(entry[self.rather] for entry in after):
                after[-1] = next((entry for entry in before if entry[self.rather]), after[-1])
        counts = answer.get(TRUNCATED, {})
        if gone := _total(before, inner) - _total(after, inner):
            counts = {**counts, self.field: counts.get(self.field, 0) + gone}
        return {**answer, name: after, TRUNCATED: counts}


def _first(value: Json, kept: int) -> Json:
    if isinstance(value, str):
        return cut_text(value, kept)
    return value[:kept] if isinstance(value, list) else value if kept else None


def _count(value: Json) -> int:
    return len(value) if isinstance(value, list | str) else int(bool(value))


def _total(value: Json, inner: str) -> int:
    """Count the units of a field, or of the field `inner` of the objects in it."""
    if not inner:
        return _count(value)
    return sum(_count(entry.get(inner)) for entry in (value if isinstance(value, list) else [value]))


@dataclass(frozen=True, slots=True)
class CutOrder:
    """The order in which parts of one kind of answer may be cut.

    Args:
        keeps: short fields that always stay; the last is cut if nothing else is left.
        cuts: what to shorten, least important first.
        ranked: fields by importance, unlisted ones last: if the cuts do not suffice, fields are kept in this
            order while there is room.
    """

    keeps: tuple[str, ...]
    cuts: tuple[Cut, ...]
    ranked: tuple[str, ...] = ()


def _read_orders() -> dict[str, CutOrder]:
    rules = tomllib.loads(Path(__file__).with_name("budget_rules.toml").read_text(encoding="utf-8"))
    return {
        schema: CutOrder(
            tuple(rule["keeps"]),
            tuple(Cut(**cut) for cut in rules.get(rule.get("cuts_of"), rule)["cuts"]),
            tuple(rule["ranked"]),
        )
        for rule in rules.values()
        for schema in rule["schemas"]
    }


ORDERS = _read_orders()
"""By schema name, or `<schema>:<verdict>` if that verdict has its own order."""


def order_of(name: str, answer: Answer) -> CutOrder:
    """Return the order of the answer's schema and verdict (`Diagnosis:unknown`), or of the schema."""
    return ORDERS.get(f"{name}:{answer.get('verdict')}") or ORDERS[name]


def dumps(value: Json) -> str:
    """Serialize to JSON as sent: compact, with non-ASCII characters unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def fit(
    answer: Answer, order: CutOrder, max_chars: int, *, cursor_at: Callable[[int], str] | None = None
) -> Answer:
    """Return the answer, shortened if its JSON is longer than `max_chars`.

    Args:
        max_chars: at least MIN_CHARS.
        cursor_at: for a list with `items` and `next_cursor`: returns the cursor after a number of items, so
            that the next page begins with the items left out.
    """
    if len(dumps(answer)) <= max_chars:
        return answer
    short = dict(answer)
    count = len(answer.get("items") or ())
    if cursor_at is not None:  # reserve room for the longest cursor
        short["next_cursor"] = max((cursor_at(at) for at in range(count + 1)), key=len)
    for cut in order.cuts:
        short = _take(short, cut, max_chars)
        if _size(short) <= max_chars:
            break
    else:
        short = _choose(short, order, max_chars)
    if cursor_at is not None:
        kept = len(short.get("items") or ())
        told = min(max(kept, 1), count)  # an item that alone is too long is left out, or no page would follow
        short["next_cursor"] = answer.get("next_cursor") if told == count else cursor_at(told)
    return short


def cut_text(text: str, max_chars: int) -> str:
    """Return at most `max_chars` characters from the start of a text, cut at the end of a line or word."""
    if len(text) <= max_chars:
        return text
    at = max(text.rfind("\n", 0, max_chars + 1), 0)
    if at < max_chars // 2:
        at = max(text.rfind(" ", 0, max_chars + 1), at)
    return text[:at].rstrip()


def _take(short: Answer, cut: Cut, max_chars: int) -> Answer:
    """Apply a cut only as far as needed for the answer to fit, or as far as allowed."""
    units = cut.units(short)
    if units <= cut.keep:
        return short
    least = cut.shorten(short, cut.keep)
    if _size(least) > max_chars:
        return least
    more = range(cut.keep + 1, min(units - 1, max_chars) + 1)  # each unit takes at least one character
    fitting = bisect_left(more, True, key=lambda kept: _size(cut.shorten(short, kept)) > max_chars)
    return cut.shorten(short, cut.keep + fitting)


def _choose(short: Answer, order: CutOrder, max_chars: int) -> Answer:
    """Leave out whole fields, keeping `order.keeps` and then the most important ones that fit."""
    counts = short.pop(TRUNCATED, {})

    def only(names: Collection[str]) -> Answer:
        chosen = {name: value for name, value in short.items() if name in names}
        left = {field: count for field, count in counts.items() if field.partition(".")[0] in chosen}
        gone = len(short) - len(chosen)
        return {**chosen, TRUNCATED: {**left, WHOLE_FIELDS: gone} if gone else left}

    names = set(order.keeps)
    if _size(least := only(names)) > max_chars:
        return _take(least, Cut(order.keeps[-1]), max_chars)
    for name in dict.fromkeys((*order.ranked, *short)):
        if name in short and _size(only({*names, name})) <= max_chars:
            names.add(name)
    return only(names)


def _size(answer: Answer) -> int:
    return len(dumps(answer))
