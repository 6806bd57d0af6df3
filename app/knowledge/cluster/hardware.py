"""How far a cluster's share of a GPU architecture differs from its share in all failures, and if by chance.

Fisher's exact test on "in the cluster" and "on this architecture", corrected over all tables of all clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from app.extract.facts import Frozen
from app.extract.fields.gpu_names import architectures_of
from app.knowledge.statistics import benjamini_hochberg, fisher_two_sided

ByChance = Literal["more_often", "less_often", "no_difference", "too_few"]


class ArchitectureLift(Frozen):
    """How a GPU architecture's share in the cluster compares with its share in all other failures."""

    architecture: str
    reports: int
    of: int = Field(description="reports of the cluster that name a GPU")
    all_reports: int
    all_of: int = Field(description="failures of the repository that name a GPU")
    lift: float | None = Field(description="share here by share in all; null where too few to say")
    p: float | None = Field(description="Fisher's exact test, two-sided; null where too few to say")
    q: float | None = Field(description="p after Benjamini-Hochberg over all clusters")
    by_chance: ByChance


REPORTS_MIN = 5
"""With fewer reports, observed or expected, no test is made."""
FALSE_DISCOVERIES = 0.05
"""The share of findings that may be by chance."""


def architecture_lifts(
    named: Iterable[tuple[str, int, str]], wanted: Iterable[str]
) -> dict[str, tuple[ArchitectureLift, ...]]:
    """The lift table of each wanted cluster, its commonest architectures first.

    Args:
        named: (cluster, issue, canonical name of an accelerator), all failures of the repository.
        wanted: clusters to give a table for; all of them count for the correction.
    """
    cards: dict[tuple[str, int], set[str]] = {}
    for cluster, number, name in named:
        cards.setdefault((cluster, number), set()).add(name)
    here: dict[str, Counter[str]] = {}
    of: Counter[str] = Counter()
    everywhere: Counter[str] = Counter()
    for (cluster, _), names in cards.items():
        if known := architectures_of(names):
            of[cluster] += 1
            here.setdefault(cluster, Counter()).update(known)
            everywhere.update(known)
    total = sum(of.values())
    chances = {
        (cluster, architecture): fisher_two_sided(counts[architecture], of[cluster], count, total)
        for cluster, counts in here.items()
        if of[cluster] >= REPORTS_MIN
        for architecture, count in everywhere.items()
        if counts[architecture] >= REPORTS_MIN or of[cluster] * count / total >= REPORTS_MIN
    }
    adjusted = dict(zip(chances, benjamini_hochberg(list(chances.values())), strict=True))
    found: dict[str, tuple[ArchitectureLift, ...]] = dict.fromkeys(wanted, ())
    for cluster in found.keys() & here.keys():
        counts = here[cluster]
        rows = [
            _lift(architecture, counts[architecture], of[cluster], count, total, chances.get(key), q)
            for architecture, count in everywhere.items()
            if (q := adjusted.get(key := (cluster, architecture))) is not None or counts[architecture]
        ]
        found[cluster] = tuple(sorted(rows, key=lambda row: (-row.reports, -row.all_reports)))
    return found


def _lift(
    architecture: str, here: int, of: int, everywhere: int, total: int, p: float | None, q: float | None
) -> ArchitectureLift:
    lift = (here / of) / (everywhere / total)
    by_chance: ByChance = "more_often" if lift > 1 else "less_often"
    if q is None or p is None:
        by_chance = "too_few"
    elif q > FALSE_DISCOVERIES:
        by_chance = "no_difference"
    return ArchitectureLift(
        architecture=architecture,
        reports=here,
        of=of,
        all_reports=everywhere,
        all_of=total,
        lift=None if q is None else round(lift, 2),
        p=None if p is None else float(f"{p:.2g}"),
        q=None if q is None else float(f"{q:.2g}"),
        by_chance=by_chance,
    )
