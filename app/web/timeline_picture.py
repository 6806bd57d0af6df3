"""Where the bars of a cluster's timeline stand; the template draws them.

In: reports by time. Out: bars with their numbers and labels, in the units of the picture. The same numbers
stand in the picture's description.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.knowledge.cluster_shapes import Timeline

WIDTH, HEIGHT, LEFT, BASE, TOP = 640, 124, 4, 92, 18
STEP_MOST = 64
"""Few bars stand together and do not fill the width."""
LABEL_W = 58
"""Room that one label below the axis takes."""
UNITS = {"week": "a week", "month": "a month", "quarter": "a quarter", "year": "a year"}


@dataclass(frozen=True, slots=True)
class Bar:
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
    bars: tuple[Bar, ...]
    unit: str
    description: str
    width: int
    height: int = HEIGHT
    base: int = BASE


def draw_timeline(timeline: Timeline | None) -> TimelinePicture | None:
    """The bars, the first of the highest ones marked; None where there are no two to compare."""
    if timeline is None or len(timeline.buckets) < 2:
        return None
    buckets = timeline.buckets
    step = min(STEP_MOST, (WIDTH - 2 * LEFT) / len(buckets))
    peak = max(bucket.reports for bucket in buckets)
    every = -(-LABEL_W // int(step)) if step < LABEL_W else 1
    first_peak = next(at for at, bucket in enumerate(buckets) if bucket.reports == peak)
    bars = tuple(
        Bar(
            x=round(LEFT + at * step + step * 0.15, 1), w=round(step * 0.7, 1),
            y=round(BASE - (BASE - TOP) * bucket.reports / peak, 1),
            h=round((BASE - TOP) * bucket.reports / peak, 1), reports=bucket.reports,
            label=bucket.label if at % every == 0 else "", is_peak=at == first_peak and peak > 1,
        )
        for at, bucket in enumerate(buckets)
    )  # fmt: skip
    told = ", ".join(f"{bucket.label} {bucket.reports}" for bucket in buckets if bucket.reports)
    unit, width = UNITS[timeline.unit], round(2 * LEFT + step * len(buckets))
    return TimelinePicture(bars, unit, f"Reports {unit}: {told}.", width)
