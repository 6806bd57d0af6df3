"""Where the boxes and lines of a report's graph stand; the template draws them.

The issue stands in the middle, what made or mends it on the left, other issues on the right. The relation
is written above its box, never on a line. All of it stands in the list below the picture as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.knowledge.issue.relations import Graph, GraphEdge, GraphNode
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
    """A node; `y` is its upper edge, `relation` is written above it.

    `path` is the line between it and the root, `css` the line's class, `tip` the path of its arrow head.
    """

    x: int
    y: int
    name: str
    state: str
    title: str
    address: str
    relation: str = ""
    path: str = ""
    css: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    boxes: tuple[Box, ...]
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
    left = [pair for pair in shown if pair[1].kind in _LEFT or graph.node(pair[0]).kind == "pull_request"]
    right = [pair for pair in shown if pair not in left]
    while len(right) > max(ROWS_MAX, len(left) + 1):
        left.append(right.pop())
    shift = 0 if left else MIDDLE_X - LEFT_X
    rows = max(len(left), len(right), 1)
    x, y = MIDDLE_X - shift, TOP + (rows * ROW_H - (ROW_H - BOX_H)) // 2 - BOX_H // 2
    name = _name(root, root.repo)
    boxes = [Box(x, y, name, root.state, _title(root), page_address(root.repo, root.number, repos[0]))]
    for x, side in ((LEFT_X, left), (RIGHT_X - shift, right)):
        start = TOP + ((rows - len(side)) * ROW_H) // 2
        boxes += [
            _box(x, start + row * ROW_H, boxes[0], graph, key, edge, repos[0])
            for row, (key, edge) in enumerate(side)
        ]
    return Picture(
        width=(RIGHT_X if right else MIDDLE_X) + BOX_W + LEFT_X - shift,
        height=TOP + rows * ROW_H,
        boxes=tuple(boxes),
        label=f"What belongs to {name}",
        description="; ".join(f"{box.relation}: {box.name}, {box.state or box.title}" for box in boxes[1:]),
        left_out=len(strongest) > len(shown),
    )


def _box(x: int, y: int, me: Box, graph: Graph, key: str, edge: GraphEdge, default_repo: str) -> Box:
    """A box and the curve between its side and the root's; the arrow head stands at the edge's target."""
    root, node = graph.nodes[0], graph.node(key)
    state = "not stored" if node.kind == "unknown" else node.state
    state = f"PR, {state}" if node.kind == "pull_request" else state
    if node.released_in:
        state += f", in {node.released_in}"
    title = _title(node)
    if node.repo != root.repo:  # its name leaves the state no room beside it
        state, title = "", _cut(f"{state}: {title}" if title else state)
    is_left, is_outward = x < me.x, edge.source == root.key
    x1, x2 = (me.x, x + BOX_W) if is_left else (me.x + BOX_W, x)
    y1, y2 = me.y + BOX_H // 2, y + BOX_H // 2
    bend, tip = (x1 + x2) // 2, (x2, y2) if is_outward else (x1, y1)
    return Box(
        x,
        y,
        _name(node, root.repo),
        state,
        title,
        node.url if node.kind == "unknown" else page_address(node.repo, node.number, default_repo),
        relation=graph.words(edge),
        path=f"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}",
        css="do" if edge.basis == "likeness" else _LINES.get(edge.kind, ""),
        tip=f"M{tip[0]} {tip[1]}l{9 if is_left == is_outward else -9} -5v10z",
    )


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
