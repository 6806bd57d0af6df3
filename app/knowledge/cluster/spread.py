"""GPU architectures over-represented in a cluster, and the regression range its reports agree on.

Architectures: Fisher's exact test (The logic of inductive inference, 1935) on "in the cluster" and "on this
architecture"; by log-factorials, so that a server needs no statistics library.
Range: each report bounds the first bad version, after its last working and up to its first failing version.
Reports with another range, or of an earlier version, disagree.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import exp, lgamma
from typing import Literal

from pydantic import Field

from app.extract.facts import Frozen, Regression
from app.extract.fields.gpu_names import architectures_of
from app.extract.versions import Version, is_before, ordered, sort_key
from app.knowledge.possible_versions import REPORTED
from app.knowledge.version.issues import IssueWords, ListedFailure, StatedValue
from app.store.derived.facts import REGRESSION_FIELDS

ByChance = Literal["more_often", "less_often", "no_difference", "too_few"]


class ArchitectureLift(Frozen):
    """A GPU architecture's share in the cluster compared with its share in all failures."""

    architecture: str
    reports: int
    of: int = Field(description="number of the cluster's reports that name a GPU")
    all_reports: int
    all_of: int = Field(description="number of the repository's failures that name a GPU")
    lift: float | None = Field(description="cluster share / overall share; null if too few")
    p: float | None = Field(description="Fisher's exact test, two-sided; null if too few")
    by_chance: ByChance


REPORTS_MIN = 5
"""Fewest reports, observed or expected, for a test."""
CHANCE_MAX = 0.001
"""Greatest p that is no chance; small, as a page tests several architectures."""
_TIE = 1 + 1e-7
"""Rounding tolerance, so that tables as likely as the observed one are included."""


def architecture_lifts(named: Iterable[tuple[str, int, str]], cluster: str) -> tuple[ArchitectureLift, ...]:
    """Return the lift table of a cluster, most common architectures first.

    Args:
        named: (cluster, issue, canonical accelerator name) for all failures of the repository.
    """
    cards: dict[tuple[str, int], set[str]] = {}
    for key, number, name in named:
        cards.setdefault((key, number), set()).add(name)
    known = [(key, found) for (key, _), names in cards.items() if (found := architectures_of(names))]
    everywhere = Counter(name for _, names in known for name in names)
    here = Counter(name for key, names in known if key == cluster for name in names)
    of, total = sum(key == cluster for key, _ in known), len(known)
    rows = []
    for architecture, count in everywhere.items():
        reports = here[architecture]
        lift, p, by_chance = None, None, "too_few"
        if reports >= REPORTS_MIN or of * count / total >= REPORTS_MIN:
            lift, p = (reports / of) / (count / total), fisher_two_sided(reports, of, count, total)
            by_chance = "no_difference" if p > CHANCE_MAX else "more_often" if lift > 1 else "less_often"
        elif not reports:
            continue
        rows.append(
            ArchitectureLift(
                architecture=architecture,
                reports=reports,
                of=of,
                all_reports=count,
                all_of=total,
                lift=lift and round(lift, 2),
                p=p and float(f"{p:.2g}"),
                by_chance=by_chance,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.reports, -row.all_reports)))


def fisher_two_sided(here: int, of: int, everywhere: int, total: int) -> float:
    """Return the probability, under independence, of a table at most as likely as this one.

    Args:
        here: items of the kind in the part; `of`: all items in the part.
        everywhere: items of the kind in the whole; `total`: all items, including the part.
    """
    low, high = max(0, of + everywhere - total), min(of, everywhere)
    fixed = _log_choose(total, of)
    chances = [
        exp(_log_choose(everywhere, k) + _log_choose(total - everywhere, of - k) - fixed)
        for k in range(low, high + 1)
    ]
    observed = chances[here - low] * _TIE
    return min(1.0, sum(chance for chance in chances if chance <= observed))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


class RangeWitness(Frozen):
    """What one report states about the regression range."""

    number: int
    url: str
    span: Regression
    agrees: bool
    reason: str = Field("", description="why it does not agree with the range, or why it names no version")
    quotes: tuple[StatedValue, ...] = ()


EARLIER_MAX = 5
"""Reports from earlier versions that are listed."""
QUOTES_MAX = 2
NO_VERSION = "names a change and no version"
NO_ORDER = "its versions have no place in the order of releases"
SEEN_BEFORE = "other reports met the failure in earlier versions"


def cluster_range(
    canonical: int, reports: Sequence[ListedFailure], words: IssueWords
) -> tuple[Regression | None, list[RangeWitness]]:
    """Return the narrowest range that reports agree on, and all reports with one, agreeing ones first.

    The canonical report's range counts first, then the newest; each later one narrows it or disagrees. There
    is no range if more reports met the failure in versions before it than agree.
    """
    order = sorted(reports, key=lambda one: (one.issue.number != canonical, -one.issue.number))
    low: Version | None = None
    high: Version | None = None
    spans: list[Regression] = []
    agreeing: list[RangeWitness] = []
    others: list[RangeWitness] = []
    for one in order:
        if (span := one.facts.regression) is None:
            continue
        fails = [version for item in _bad_versions(span) if (version := ordered(item))]
        works = ordered(span.last_working)
        has_version = bool(_bad_versions(span) or span.last_working)
        if has_version and not works and not fails:
            others.append(_witness(one, span, words, NO_ORDER, agrees=False))
            continue
        lows = [version for version in (low, works) if version]
        highs = [version for version in (high, *fails) if version]
        if lows and highs and max(lows) >= min(highs):
            reason = f"says that it works in {works}, where others say that it failed"
            if fails and low and min(fails) <= low:
                reason = f"says that it fails in {min(fails)}, where others say that it worked"
            others.append(_witness(one, span, words, reason, agrees=False))
            continue
        low, high = max(lows, default=None), min(highs, default=None)
        spans.append(span)
        agreeing.append(_witness(one, span, words, "" if has_version else NO_VERSION))
    placed = ((ordered(one.facts.versions.get("vllm")), one) for one in order if not one.facts.regression)
    seen = [(version, one) for version, one in placed if version and low and version <= low]
    early = sorted(seen, key=lambda pair: (pair[0], pair[1].issue.number))
    if len(early) > len(spans):
        agreeing = [one.model_copy(update={"agrees": False, "reason": SEEN_BEFORE}) for one in agreeing]
        return None, [*agreeing, *others]
    others += [_earlier(version, one, words) for version, one in early[:EARLIER_MAX]]
    return _merged_range(spans) if spans else None, [*agreeing, *others]


def _bad_versions(span: Regression) -> list[str]:
    return [item for item in (span.first_failing, *span.still_failing) if item]


def _merged_range(spans: Sequence[Regression]) -> Regression:
    """Merge ranges that agree, keeping the reports' spelling of versions."""
    fails = [item for span in spans for item in _bad_versions(span)]
    first = min(fails, key=sort_key, default=None)
    lows = (item for span in spans if (item := span.last_working))
    ends = (item for span in spans if (item := span.fixed_in))
    culprits = Counter(span.culprit for span in spans if span.culprit)
    return Regression(
        last_working=max(lows, key=sort_key, default=None),
        first_failing=first,
        still_failing=tuple(sorted({item for item in fails if is_before(first, item)}, key=sort_key)),
        fixed_in=min(ends, key=sort_key, default=None),
        culprit=next((name for name, _ in culprits.most_common(1)), None),
    )


def _witness(
    one: ListedFailure, span: Regression, words: IssueWords, reason: str, *, agrees: bool = True
) -> RangeWitness:
    quotes = words.stated(one.issue.number, REGRESSION_FIELDS)[:QUOTES_MAX]
    return RangeWitness.based_on(one.issue, span=span, agrees=agrees, reason=reason, quotes=quotes)


def _earlier(version: Version, one: ListedFailure, words: IssueWords) -> RangeWitness:
    """Return a report of the failure in or before the last version reported as working."""
    return RangeWitness.based_on(
        one.issue,
        span=Regression(first_failing=str(version)),
        agrees=False,
        reason=f"reported from {version}, where others say that it worked",
        quotes=words.stated(one.issue.number, (REPORTED,))[:1],
    )
