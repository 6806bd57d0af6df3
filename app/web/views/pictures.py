"""Where the boxes and lines of a report's graph stand; the template draws them.

The issue stands in the middle, what made or mends it on the left, other issues on the right. The relation
is written above its box, never on a line. All of it stands in the list below the picture as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.knowledge.issue.shapes import Graph, GraphEdge, GraphNode
from app.web.views.render import page_address

NODES_MAX = 24
BOX_W, BOX_H, ROW_H = 214, 44, 78
LEFT_X, MIDDLE_X, RIGHT_X = 4, 284, 564
TITLE_CHARS = 30
WIDE = 1.45
ROWS_MAX = 10
"""Boxes of one side; the lightest ones then go to the other."""
TOP = 24

_PREFIX = re.compile(r"(?:\[[^\]]{1,40}\]\s*:?\s*){1,5}")
_LEFT = frozenset({"introduced_by", "fixed_by", "fixes", "moved_to"})
_LINES = {"mentions": "da", "similar": "do"}


@dataclass(frozen=True, slots=True)
class Box:
    """A node; `y` is its upper edge, `relation` is written above it."""

    x: int
    y: int
    name: str
    state: str
    title: str
    relation: str
    address: str
    is_root: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """An edge from a side of the root to a side of a box; `tip` is the arrow head's path."""

    path: str
    css: str
    tip: str


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    label: str
    description: str
    left_out: bool
    box_w: int = BOX_W
    box_h: int = BOX_H


def draw(graph: Graph, repos: Sequence[str]) -> Picture | None:
    """The picture of a graph; None where the issue stands alone."""
    strongest: dict[str, GraphEdge] = {}
    for edge in graph.edges:
        strongest.setdefault(graph.other_end(edge).key, edge)
    shown = list(strongest.items())[: NODES_MAX - 1]
    if not shown:
        return None
    root = graph.nodes[0]
    left = [pair for pair in shown if _is_left(graph.node(pair[0]), pair[1])]
    right = [pair for pair in shown if pair not in left]
    while len(right) > max(ROWS_MAX, len(left) + 1):
        left.append(right.pop())
    shift = 0 if left else MIDDLE_X - LEFT_X
    rows = max(len(left), len(right), 1)
    height = TOP + rows * ROW_H
    middle = TOP + (rows * ROW_H - (ROW_H - BOX_H)) // 2
    me = Box(
        MIDDLE_X - shift,
        middle - BOX_H // 2,
        _name(root, root.repo),
        root.state,
        _title(root),
        "",
        _address(root, repos),
        is_root=True,
    )
    boxes, lines = [me], []
    for x, side in ((LEFT_X, left), (RIGHT_X - shift, right)):
        start = TOP + ((rows - len(side)) * ROW_H) // 2
        for row, (key, edge) in enumerate(side):
            box = _box(x, start + row * ROW_H, graph.node(key), graph.words(edge), root, repos)
            boxes.append(box)
            lines.append(_line(me, box, edge, outward=edge.source == root.key))
    return Picture(
        width=(RIGHT_X + BOX_W + LEFT_X if right else MIDDLE_X + BOX_W + LEFT_X) - shift,
        height=height,
        boxes=tuple(boxes),
        lines=tuple(lines),
        label=f"What belongs to {_name(root, root.repo)}",
        description="; ".join(f"{box.relation}: {box.name}, {box.state or box.title}" for box in boxes[1:]),
        left_out=len(strongest) > len(shown),
    )


def _is_left(node: GraphNode, edge: GraphEdge) -> bool:
    return edge.kind in _LEFT or node.kind == "pull_request"


def _box(x: int, y: int, node: GraphNode, relation: str, root: GraphNode, repos: Sequence[str]) -> Box:
    kind = "PR, " if node.kind == "pull_request" else ""
    state = "not stored" if node.kind == "unknown" else f"{kind}{node.state}"
    if node.released_in:
        state += f", in {node.released_in}"
    title = _title(node)
    if node.repo != root.repo:  # its name leaves the state no room beside it
        state, title = "", _cut(f"{state}: {title}" if title else state)
    return Box(x, y, _name(node, root.repo), state, title, relation, _address(node, repos))


def _line(me: Box, box: Box, edge: GraphEdge, *, outward: bool) -> Line:
    """A curve between the facing sides; the arrow head stands at the edge's target."""
    is_left = box.x < me.x
    x1, x2 = (me.x, box.x + BOX_W) if is_left else (me.x + BOX_W, box.x)
    y1, y2 = me.y + BOX_H // 2, box.y + BOX_H // 2
    bend = (x1 + x2) // 2
    tip_x, tip_y = (x2, y2) if outward else (x1, y1)
    side = 9 if is_left == outward else -9
    tip = f"M{tip_x} {tip_y}l{side} -5v10z"
    css = "do" if edge.basis == "likeness" else _LINES.get(edge.kind, "")
    return Line(f"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}", css, tip)


def _name(node: GraphNode, repo: str) -> str:
    return f"#{node.number}" if node.repo == repo else _cut(node.key)


def _title(node: GraphNode) -> str:
    """A title without its form's prefix, such as `[Bug]:`."""
    return _cut(_PREFIX.sub("", node.title) or node.title)


def _cut(text: str) -> str:
    """What fits into a box; capitals are wide, and nothing here can measure a font."""
    room = float(TITLE_CHARS)
    for place, char in enumerate(text):
        room -= WIDE if char.isupper() or ord(char) > 0x2FFF else 1.0
        if room < 0:
            return text[: max(1, place - 1)].rstrip() + "…"
    return text


def _address(node: GraphNode, repos: Sequence[str]) -> str:
    """Our own page where the issue is stored, else GitHub's."""
    return page_address(node.repo, node.number, repos[0]) if node.kind != "unknown" else node.url
