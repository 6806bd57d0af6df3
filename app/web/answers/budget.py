"""An answer made to fit a budget of characters: what matters least goes first, in whole entries.

In: an answer as JSON-able values, the order in which its parts may go (`Shape`), and the most characters its
JSON may take as it is sent. Out: the answer, or a shortened one with `truncated: {field: left}`, which says
how many entries of a list, or characters of a text, were left out; `"*"` counts fields that were left out
whole. A shortened answer keeps the types of the full one.
Pure: nothing is read from anywhere, and the values given are not altered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = Any
Answer = dict[str, Json]

MIN_CHARS = 200
"""The smallest budget: every `Shape` must have its `keeps` in it, and `truncated` beside them."""
MAX_CHARS = 1_000_000
TRUNCATED = "truncated"
WHOLE_FIELDS = "*"


class Step(Protocol):
    """One thing that may be shortened: how far it goes, and what is then left of it."""

    @property
    def field(self) -> str:
        """What `truncated` calls it; its first part, up to a dot, is a field of the answer."""

    @property
    def keep(self) -> int:
        """How much of it this step leaves at least."""

    def units(self, value: Json) -> int:
        """How many units the value of the answer's field has; each can go by itself."""

    def cut(self, value: Json, kept: int) -> Json:
        """The value with its first `kept` units."""

    def left(self, value: Json, kept: int) -> int:
        """What `truncated` says when the first `kept` units stay."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a list go, from its end; `graph.edges` is a list inside an object."""

    field: str
    keep: int = 0

    def units(self, value: Json) -> int:
        found = self._list(value)
        return len(found)

    def cut(self, value: Json, kept: int) -> Json:
        _, _, inner = self.field.partition(".")
        return {**value, inner: value[inner][:kept]} if inner else value[:kept]

    def left(self, value: Json, kept: int) -> int:
        return self.units(value) - kept

    def _list(self, value: Json) -> list[Json]:
        _, _, inner = self.field.partition(".")
        found = value.get(inner) if inner and isinstance(value, dict) else value
        return found if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class Inside:
    """One field of each entry of a list is emptied, from the last entry up; `matches.excerpt`.

    The field must be one that may be empty: a list, a text, or an object that may be null.
    """

    field: str
    keep: int = 0

    def units(self, value: Json) -> int:
        return len(value) if isinstance(value, list) else 0

    def cut(self, value: Json, kept: int) -> Json:
        inner = self.field.partition(".")[2]
        return [
            entry if at < kept or inner not in entry else {**entry, inner: _emptied(entry[inner])}
            for at, entry in enumerate(value)
        ]

    def left(self, value: Json, kept: int) -> int:
        inner = self.field.partition(".")[2]
        gone = (entry.get(inner) for entry in value[kept:])
        return sum(len(item) if isinstance(item, list | str) else 1 for item in gone if item)


@dataclass(frozen=True, slots=True)
class Words:
    """A text is cut at the end of a line, or of a word where a line is long."""

    field: str
    keep: int = 0

    def units(self, value: Json) -> int:
        return len(value) if isinstance(value, str) else 0

    def cut(self, value: Json, kept: int) -> Json:
        return cut_text(value, kept)

    def left(self, value: Json, kept: int) -> int:
        return len(value) - len(cut_text(value, kept))


@dataclass(frozen=True, slots=True)
class Emptied:
    """A field is emptied at once: a text of which a part is of no use, or an object that may be null."""

    field: str
    keep: int = 0

    def units(self, value: Json) -> int:
        return 1 if value else 0

    def cut(self, value: Json, kept: int) -> Json:
        return value if kept else _emptied(value)

    def left(self, value: Json, kept: int) -> int:
        return 0 if kept else len(value) if isinstance(value, list | str) else 1


@dataclass(frozen=True, slots=True)
class Shape:
    """In which order the parts of one kind of answer may go.

    Args:
        keeps: fields that always stay; short ones.
        steps: what is shortened, the least needed first.
        ranked: the fields from the most needed on, those not named here after them: where the steps do not
            suffice, fields stay in this order as long as there is room.
    """

    keeps: tuple[str, ...]
    steps: tuple[Step, ...]
    ranked: tuple[str, ...] = ()

    def by_need(self, answer: Mapping[str, Json]) -> list[str]:
        """The fields that may go, the most needed first."""
        unranked = (name for name in answer if name not in self.ranked and name not in self.keeps)
        return [*(name for name in self.ranked if name in answer), *unranked]


def dumps(value: Json) -> str:
    """JSON as it is sent: no blanks, no escapes that UTF-8 does not need."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def fit(
    answer: Answer, shape: Shape, max_chars: int, *, cursor_at: Callable[[int], str] | None = None
) -> Answer:
    """The answer, shortened where its JSON would be longer than `max_chars`.

    Args:
        answer: JSON-able values.
        shape: in which order its parts may go.
        max_chars: at least MIN_CHARS.
        cursor_at: for a list with `items` and `next_cursor`: the cursor of the page after so many items. The
            items that were left out then begin the next page.
    """
    if len(dumps(answer)) <= max_chars:
        return answer
    draft = _Draft(dict(answer), max_chars)
    count = len(answer.get("items") or ())
    if cursor_at is not None:
        draft.put("next_cursor", max((cursor_at(at) for at in range(count + 1)), key=len))
    for step in shape.steps:
        if draft.shorten(step):
            break
    else:
        draft.choose(shape)
    if cursor_at is not None:
        kept = len(draft.told.get("items") or ())
        whole = kept == count
        draft.put("next_cursor", answer.get("next_cursor") if whole else cursor_at(kept) if kept else None)
    return draft.told


def cut_text(text: str, max_chars: int) -> str:
    """The beginning of a text, at most so long: up to the end of a line, or of a word."""
    if len(text) <= max_chars:
        return text
    at = max(text.rfind("\n", 0, max_chars + 1), 0)
    if at < max_chars // 2:
        at = max(text.rfind(" ", 0, max_chars + 1), at)
    return text[:at].rstrip()


@dataclass(slots=True)
class _Draft:
    """An answer while it is shortened; sizes are kept, so that no part is written twice."""

    told: Answer
    max_chars: int
    truncated: dict[str, int] = field(default_factory=dict)
    _original: Answer = field(init=False)
    _sizes: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._original = dict(self.told)
        self._sizes = {name: len(dumps({name: value})) - 1 for name, value in self.told.items()}

    def put(self, name: str, value: Json) -> None:
        self.told[name] = value
        self._sizes[name] = len(dumps({name: value})) - 1

    def shorten(self, step: Step) -> bool:
        """Take the step as far as it must go; whether the answer fits then."""
        name = step.field.partition(".")[0]
        if name not in self.told:
            return False
        before = self.told[name]
        units = step.units(before)
        if units <= step.keep:
            return False
        if not self._try(name, step, before, step.keep):
            return False
        low, high = step.keep, max(step.keep, min(units - 1, self.max_chars))  # a unit takes a character
        while low < high:
            middle = (low + high + 1) // 2
            if self._try(name, step, before, middle):
                low = middle
            else:
                high = middle - 1
        return self._try(name, step, before, low)

    def choose(self, shape: Shape) -> None:
        """Leave out whole fields: of those the shape does not keep, only the most needed that fit stay."""
        short, sizes, cuts = self.told, self._sizes, self.truncated
        short.pop(TRUNCATED, None)
        chosen = [name for name in short if name in shape.keeps]
        for name in shape.by_need(short):
            self._take([*chosen, name], short, sizes, cuts)
            if self._fits():
                chosen.append(name)
        self._take(chosen, short, sizes, cuts)
        self._fits()

    def _take(self, names: Iterable[str], short: Answer, sizes: dict[str, int], cuts: dict[str, int]) -> None:
        wanted = set(names)
        self.told = {name: value for name, value in short.items() if name in wanted}
        self._sizes = {name: sizes[name] for name in self.told}
        self.truncated = {told: left for told, left in cuts.items() if told.partition(".")[0] in wanted}
        if gone := len(short) - len(self.told):
            self.truncated[WHOLE_FIELDS] = gone

    def _try(self, name: str, step: Step, before: Json, kept: int) -> bool:
        self.put(name, step.cut(before, kept))
        base = self._original[name] if isinstance(step, Entries | Words) else before
        whole = step.units(base)
        left = step.left(base, kept) if kept < whole else 0
        self.truncated.pop(step.field, None)
        if left:
            self.truncated[step.field] = left
        return self._fits()

    def _fits(self) -> bool:
        self.told.pop(TRUNCATED, None)
        size = 1 + sum(self._sizes.values())
        if self.truncated:
            self.told[TRUNCATED] = dict(self.truncated)
            size += len(dumps({TRUNCATED: self.truncated})) - 1
        return size <= self.max_chars


def _emptied(value: Json) -> Json:
    return [] if isinstance(value, list) else "" if isinstance(value, str) else None
