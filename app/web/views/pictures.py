"""Where the bars and words of a chart stand; the template draws them, the stylesheet colours them.

Columns for the weeks, levels for kinds and hardware. Every value is written beside its bar and told in the
label, so that the drawing says nothing that is not read out.

Where the boxes and lines of a report's graph stand; the template draws them.

The issue stands in the middle, what made or mends it on the left, other issues on the right. The relation
is written above its box, never on a line. All of it stands in the list below the picture as well.

Where the bars of a cluster's timeline stand; the template draws them.

In: reports by time. Out: bars with their numbers and labels, in the units of the picture. The same numbers
stand in the picture's description.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.knowledge.cluster.shapes import Timeline
from app.knowledge.issue.shapes import Graph, GraphEdge, GraphNode
from app.web.views.render import page_address

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


NODES_MAX = 24
BOX_W, BOX_H, ROW_H = 214, 44, 78
LEFT_X, MIDDLE_X, RIGHT_X, WIDTH_GRAPH_PICTURE = 4, 284, 564, 782
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
        state, title = "", _cut_graph_picture(f"{state}: {title}" if title else state)
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
    return f"#{node.number}" if node.repo == repo else _cut_graph_picture(node.key)


def _title(node: GraphNode) -> str:
    """A title without its form's prefix, such as `[Bug]:`."""
    return _cut_graph_picture(_PREFIX.sub("", node.title) or node.title)


def _cut_graph_picture(text: str) -> str:
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


WIDTH_TIMELINE_PICTURE, HEIGHT_TIMELINE_PICTURE, LEFT, BASE, TOP_TIMELINE_PICTURE = 640, 124, 4, 92, 18
STEP_MOST = 64
"""Few bars stand together and do not fill the width."""
LABEL_W = 58
"""Room that one label below the axis takes."""
UNITS = {"week": "a week", "month": "a month", "quarter": "a quarter", "year": "a year"}


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A bar; `label` is empty where its neighbour's takes the room."""

    x: float
    y: float
    w: float
    h: float
    reports: int
    label: str
    is_peak: bool = False

    @property
    def middle(self) -> float:
        return round(self.x + self.w / 2, 1)


@dataclass(frozen=True, slots=True)
class TimelinePicture:
    bars: tuple[TimelineBar, ...]
    unit: str
    description: str
    width: int
    height: int = HEIGHT_TIMELINE_PICTURE
    base: int = BASE


def draw_timeline(timeline: Timeline | None) -> TimelinePicture | None:
    """The bars, the first of the highest ones marked; None where there are no two to compare."""
    if timeline is None or len(timeline.buckets) < 2:
        return None
    buckets = timeline.buckets
    step = min(STEP_MOST, (WIDTH_TIMELINE_PICTURE - 2 * LEFT) / len(buckets))
    peak = max(bucket.reports for bucket in buckets)
    every = -(-LABEL_W // int(step)) if step < LABEL_W else 1
    first_peak = next(at for at, bucket in enumerate(buckets) if bucket.reports == peak)
    bars = tuple(
        TimelineBar(
            x=round(LEFT + at * step + step * 0.15, 1),
            w=round(step * 0.7, 1),
            y=round(BASE - (BASE - TOP_TIMELINE_PICTURE) * bucket.reports / peak, 1),
            h=round((BASE - TOP_TIMELINE_PICTURE) * bucket.reports / peak, 1),
            reports=bucket.reports,
            label=bucket.label if at % every == 0 else "",
            is_peak=at == first_peak and peak > 1,
        )
        for at, bucket in enumerate(buckets)
    )
    told = ", ".join(f"{bucket.label} {bucket.reports}" for bucket in buckets if bucket.reports)
    unit, width = UNITS[timeline.unit], round(2 * LEFT + step * len(buckets))
    return TimelinePicture(bars, unit, f"Reports {unit}: {told}.", width)
