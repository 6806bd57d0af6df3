"""How far a cluster's share of a hardware kind differs from its share in all failures, and whether by chance.

Fisher's exact test on the two-by-two table of "in the cluster" and "on this architecture" (R. A. Fisher, The
logic of inductive inference, 1935), two-sided by summing the tables that are no likelier than the one seen;
then Benjamini and Hochberg's step-up rule over all tables of all clusters (Controlling the false discovery
rate, 1995). Computed from log-factorials, so that a serving process needs no statistics library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, lgamma

from app.extract.fields.gpu_names import architectures_of
from app.knowledge.cluster.shapes import ArchitectureLift, ByChance

REPORTS_MIN = 5
"""Below this number of reports, seen or to be expected, nothing is said."""
FALSE_DISCOVERIES = 0.05
"""The share of findings that may be by chance."""
_TIE = 1 + 1e-7
"""Tables as likely as the one seen count as unlikelier ones; this is the slack for rounding."""


def fisher_two_sided(here: int, of: int, everywhere: int, total: int) -> float:
    """The chance of a table as unlikely as this one or unlikelier, if there were no connection.

    Args:
        here: things of the kind in the part; `of`: things in the part.
        everywhere: things of the kind in all; `total`: things in all, the part among them.

    Raises:
        ValueError: the four numbers make no table.
    """
    low, high = max(0, of + everywhere - total), min(of, everywhere)
    if not low <= here <= high:
        raise ValueError(f"no table: {here} of {of} in the part, {everywhere} of {total} in all")
    fixed = _log_choose(total, of)
    chances = [
        exp(_log_choose(everywhere, k) + _log_choose(total - everywhere, of - k) - fixed)
        for k in range(low, high + 1)
    ]
    seen = chances[here - low] * _TIE
    return min(1.0, sum(chance for chance in chances if chance <= seen))


def benjamini_hochberg(chances: Sequence[float]) -> list[float]:
    """The adjusted p of each, in the order given: at most q of the findings up to it are by chance."""
    order = sorted(range(len(chances)), key=lambda at: chances[at], reverse=True)
    adjusted = [1.0] * len(chances)
    least = 1.0
    for place, at in enumerate(order):
        least = min(least, chances[at] * len(chances) / (len(chances) - place))
        adjusted[at] = least
    return adjusted


@dataclass(frozen=True, slots=True)
class _Cell:
    """One architecture in one cluster, against all failures that name their hardware."""

    cluster: str
    architecture: str
    here: int
    of: int
    everywhere: int
    total: int
    p: float | None = None
    q: float | None = None

    @property
    def expected(self) -> float:
        return self.of * self.everywhere / self.total


def architecture_lifts(
    named: Iterable[tuple[str, int, str]], wanted: Iterable[str]
) -> dict[str, tuple[ArchitectureLift, ...]]:
    """The lift table of each wanted cluster, its commonest architectures first.

    Args:
        named: (cluster, issue, canonical name of an accelerator), all failures of the repository.
        wanted: clusters to tell of; all of them count for the correction.
    """
    asked = set(wanted)
    cells = _tested(_cells(named, asked))
    found: dict[str, list[_Cell]] = {key: [] for key in asked}
    for cell in cells:
        if cell.cluster in asked and (cell.here or cell.q is not None):
            found[cell.cluster].append(cell)
    return {
        key: tuple(_told(cell) for cell in sorted(mine, key=lambda c: (-c.here, -c.everywhere)))
        for key, mine in found.items()
    }


def _cells(named: Iterable[tuple[str, int, str]], wanted: set[str]) -> list[_Cell]:
    """What is counted, of the clusters that are told of and of those that are big enough for a test."""
    cards: dict[tuple[str, int], set[str]] = {}
    for cluster, number, name in named:
        cards.setdefault((cluster, number), set()).add(name)
    here: dict[str, Counter[str]] = {}
    of: Counter[str] = Counter()
    everywhere: Counter[str] = Counter()
    for (cluster, _), names in cards.items():
        known = architectures_of(names)
        if known:
            of[cluster] += 1
            here.setdefault(cluster, Counter()).update(known)
            everywhere.update(known)
    total = sum(of.values())
    return [
        _Cell(cluster, architecture, counts[architecture], of[cluster], everywhere[architecture], total)
        for cluster, counts in here.items()
        if of[cluster] >= REPORTS_MIN or cluster in wanted
        for architecture in (everywhere if of[cluster] >= REPORTS_MIN else counts)
    ]


def _tested(cells: Sequence[_Cell]) -> list[_Cell]:
    """The cells, those of which enough is known with their chance."""
    enough = [cell for cell in cells if cell.here >= REPORTS_MIN or cell.expected >= REPORTS_MIN]
    chances = [fisher_two_sided(cell.here, cell.of, cell.everywhere, cell.total) for cell in enough]
    told = zip(enough, chances, benjamini_hochberg(chances), strict=True)
    tested = {(cell.cluster, cell.architecture): replace(cell, p=p, q=q) for cell, p, q in told}
    return [tested.get((cell.cluster, cell.architecture), cell) for cell in cells]


def _told(cell: _Cell) -> ArchitectureLift:
    known = cell.p is not None and cell.q is not None
    lift = (cell.here / cell.of) / (cell.everywhere / cell.total)
    return ArchitectureLift(
        architecture=cell.architecture,
        reports=cell.here,
        of=cell.of,
        all_reports=cell.everywhere,
        all_of=cell.total,
        lift=round(lift, 2) if known else None,
        p=_rounded(cell.p),
        q=_rounded(cell.q),
        by_chance=_by_chance(cell.q, lift),
    )


def _by_chance(q: float | None, lift: float) -> ByChance:
    if q is None:
        return "too_few"
    if q > FALSE_DISCOVERIES:
        return "no_difference"
    return "more_often" if lift > 1 else "less_often"


def _rounded(chance: float | None) -> float | None:
    """Two figures that tell."""
    return None if chance is None else float(f"{chance:.2g}")


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
