"""Where the bars and words of a chart stand; the template draws them, the stylesheet colours them.

Columns for the weeks, levels for kinds and hardware. Every value is written beside its bar and told in the
label, so that the drawing says nothing that is not read out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 360, 160
LEVELS_MAX = 7
NAME_CHARS = 18
_BASE_Y, _TOP_Y = 138, 20
_LEVEL_X, _LEVEL_ROOM, _LEVEL_H, _LEVEL_STEP = 128, 196, 15, 22


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its value; `css` is `hi` for the one that the chart is about."""

    x: float
    y: float
    width: float
    height: float
    css: str = "br"


@dataclass(frozen=True, slots=True)
class Word:
    """A text at its place; `css` says its anchor, weight and colour."""

    x: float
    y: float
    text: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing of `width` by `height`, with `axis` as the path of its lines; `label` has all values."""

    label: str
    bars: tuple[Bar, ...]
    words: tuple[Word, ...]
    axis: str = ""
    width: int = WIDTH
    height: int = HEIGHT


def columns(title: str, values: Sequence[tuple[str, int]]) -> Chart:
    """Values in their order as columns, the last one marked; every fourth from the end is named below."""
    most = max((value for _, value in values), default=0)
    step = WIDTH / max(len(values), 1)
    bars, words = [], []
    for place, (name, value) in enumerate(values):
        is_last = place == len(values) - 1
        height = round((_BASE_Y - _TOP_Y) * value / most, 1) if most else 0
        x, y = round((place + 0.12) * step, 1), round(_BASE_Y - height, 1)
        middle = round((place + 0.5) * step, 1)
        bars.append(Bar(x, y, round(step * 0.76, 1), height, "hi" if is_last else "br"))
        words.append(Word(middle, round(y - 4, 1), str(value), "mid bo" if is_last else "mid"))
        if (len(values) - 1 - place) % 4 == 0:
            words.append(Word(middle, _BASE_Y + 16, name, "mid mu"))
    return Chart(_label(title, values), tuple(bars), tuple(words), axis=f"M0 {_BASE_Y}h{WIDTH}")


def levels(title: str, values: Sequence[tuple[str, int]]) -> Chart:
    """Values as level bars, the greatest first; what there is no room for is summed up in words."""
    has_rest = len(values) > LEVELS_MAX
    shown = values[: LEVELS_MAX - 1] if has_rest else values
    rest = values[len(shown) :]
    most = max((value for _, value in shown), default=0)
    bars, words = [], []
    for place, (name, value) in enumerate(shown):
        y, width = _LEVEL_STEP * place + 2, round(_LEVEL_ROOM * value / most, 1) if most else 0
        bars.append(Bar(_LEVEL_X, y, width, _LEVEL_H))
        words.append(Word(_LEVEL_X - 8, y + 12, _cut(name), "end"))
        words.append(Word(_LEVEL_X + width + 6, y + 12, str(value), "mu"))
    if has_rest:
        y = _LEVEL_STEP * len(shown) + 14
        words.append(Word(_LEVEL_X - 8, y, f"{len(rest)} others", "end mu"))
        words.append(Word(_LEVEL_X, y, str(sum(value for _, value in rest)), "mu"))
    rows = len(shown) + has_rest
    return Chart(_label(title, values), tuple(bars), tuple(words), height=max(rows, 1) * _LEVEL_STEP + 4)


def _label(title: str, values: Sequence[tuple[str, int]]) -> str:
    told = ", ".join(f"{name} {value}" for name, value in values)
    return f"{title}: {told or 'none'}"


def _cut(name: str) -> str:
    return name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 1]}…"
