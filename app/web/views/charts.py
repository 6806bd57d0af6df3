"""Where the parts of a drawing stand; `_pictures.html` draws them as SVG. No text is only in a drawing."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

SHADES = 5
MAP_WIDTH, MAP_HEIGHT = 960, 300
CHAR_PX = 6.6
"""About how wide a character is at 12 pixels."""
LINE_HEIGHT = 15


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of a map; `label` is as much of its name as fits, in lines."""

    x: float
    y: float
    width: float
    height: float
    label: tuple[str, ...]


def shade(value: int, most: int) -> int:
    """How dark a cell is, 0 for none to `SHADES` for the most; small values are told apart better."""
    return 0 if value <= 0 else max(1, round(SHADES * (value / most) ** 0.5))


def tiles(names: Sequence[str], values: Sequence[int]) -> list[Tile]:
    """A treemap: rectangles as large as their values, which come the greatest first.

    Rows are filled along the shorter side as long as their tiles become more like squares (Bruls, Huizing and
    van Wijk, "Squarified treemaps", 2000).
    """
    total = sum(values) or 1
    areas = [value * MAP_WIDTH * MAP_HEIGHT / total for value in values]
    x = y = 0.0
    width, height = float(MAP_WIDTH), float(MAP_HEIGHT)
    found: list[Tile] = []
    while len(found) < len(areas):
        rest = areas[len(found) :]
        side = min(width, height)
        count = 1
        while count < len(rest) and _worst(rest[: count + 1], side) <= _worst(rest[:count], side):
            count += 1
        row = rest[:count]
        depth = sum(row) / side if side else 0.0
        along = 0.0
        for area in row:
            length = area / depth if depth else 0.0
            box = (x, y + along, depth, length) if width >= height else (x + along, y, length, depth)
            found.append(_tile(*box, names[len(found)]))
            along += length
        if width >= height:
            x, width = x + depth, width - depth
        else:
            y, height = y + depth, height - depth
    return found


def _worst(row: Sequence[float], side: float) -> float:
    depth = sum(row) / side if side else 1.0
    return max(max(depth * depth / area, area / (depth * depth)) for area in row if area) if any(row) else 0.0


def _tile(x: float, y: float, width: float, height: float, name: str) -> Tile:
    room, lines = int((width - 10) / CHAR_PX), int(height / LINE_HEIGHT) - 1  # one is left for the number
    wrapped = textwrap.wrap(
        name, max(room, 5), max_lines=max(1, lines), placeholder="…", break_long_words=False
    )
    label = [line if len(line) <= room else f"{line[: room - 1]}…" for line in wrapped] if room > 4 else []
    visible_label = tuple(label) if height > LINE_HEIGHT else ()
    return Tile(round(x, 1), round(y, 1), round(width, 1), round(height, 1), visible_label)
