"""GPU architectures over-represented in a cluster, and the regression range its reports agree on.

Architectures: Fisher's exact test (The logic of inductive inference, 1935) on "in the cluster" and "on this
architecture"; by log-factorials, so that a server needs no statistics library.
Range: each report bounds the first bad version, after its last working and up to its first failing version.
Reports with another range, or of an earlier version, disagree.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
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


STATING_MAX = 60
"""Newest reports with a range that are used. Every pair of their bounds is tried."""
EARLIER_MAX = 5
"""Reports from earlier versions that are listed."""
QUOTES_MAX = 2
NO_VERSION = "names a change and no version"


@dataclass(frozen=True, slots=True)
class _Witness:
    """A report and its range of first bad versions: after `low`, up to `high`; None is unbounded."""

    one: ListedFailure
    span: Regression
    low: Version | None
    high: Version | None

    def allows(self, low: Version | None, high: Version | None) -> bool:
        """True if every version of this range is compatible with the report."""
        starts = self.low is None or (low is not None and self.low <= low)
        ends = self.high is None or (high is not None and high <= self.high)
        return starts and ends


def cluster_range(
    canonical: int, reports: Sequence[ListedFailure], words: IssueWords
) -> tuple[Regression | None, list[RangeWitness]]:
    """Return the range that most reports agree on, if any, and all reports with one, agreeing ones first."""
    newest = sorted(reports, key=lambda one: -one.issue.number)
    stating = [_bounds_of(one, span) for one in newest if (span := one.facts.regression) is not None]
    stating = stating[:STATING_MAX]
    placed = [one for one in stating if one.low is not None or one.high is not None]
    early = _seen_in(reports, {one.one.issue.number for one in stating})
    low, high, agreeing = _best_range(placed, [version for version, _ in early], canonical)
    # Some name only a fix or a culprit, no version.
    unversioned = [one for one in stating if not (_bad_versions(one.span) or one.span.last_working)]
    others = [one for one in stating if one not in agreeing and one not in unversioned]
    witnesses = [
        *(_witness(one, words) for one in stating if one in agreeing),
        *(_witness(one, words, NO_VERSION) for one in unversioned),
        *(_witness(one, words, _disagreement(one, low, high), agrees=False) for one in others),
        *_earlier(early, low, words),
    ]
    speaking = agreeing or ([] if others else unversioned)
    return _merged_range(speaking) if speaking else None, witnesses


def _bounds_of(one: ListedFailure, span: Regression) -> _Witness:
    fails = [version for item in _bad_versions(span) if (version := ordered(item))]
    return _Witness(one, span, ordered(span.last_working), min(fails, default=None))


def _bad_versions(span: Regression) -> list[str]:
    return [item for item in (span.first_failing, *span.still_failing) if item]


def _best_range(
    placed: Sequence[_Witness], seen_in: Sequence[Version], canonical: int
) -> tuple[Version | None, Version | None, list[_Witness]]:
    """Return the bounds of the range with the most support, and the reports that agree on it.

    Support: agreeing reports minus those that saw the failure before the range. Ties go to a range with an
    upper bound, then to that of the canonical issue, then of the newest report. Support must be positive.
    """
    best: tuple[int, bool, bool, int] = (0, False, False, 0)
    found: tuple[Version | None, Version | None, list[_Witness]] = (None, None, [])
    for low in {one.low for one in placed}:
        for high in {one.high for one in placed}:
            if low is not None and high is not None and low >= high:
                continue
            meeting = [one for one in placed if one.allows(low, high)]
            if not any(one.low == low for one in meeting) or not any(one.high == high for one in meeting):
                continue
            numbers = [one.one.issue.number for one in meeting]
            against = sum(low is not None and version <= low for version in seen_in)
            rank = (len(meeting) - against, high is not None, canonical in numbers, max(numbers))
            if rank > best:
                best, found = rank, (low, high, meeting)
    return found


def _merged_range(agreeing: Sequence[_Witness]) -> Regression:
    """Merge the ranges of the agreeing reports, keeping their spelling of versions."""
    spans = [one.span for one in agreeing]
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


def _seen_in(
    reports: Sequence[ListedFailure], stating: Collection[int]
) -> list[tuple[Version, ListedFailure]]:
    """Return the vLLM versions of the reports without a range, earliest first, each with its report."""
    seen = [
        (version, one)
        for one in reports
        if one.issue.number not in stating
        and (version := ordered(one.facts.versions.get("vllm"))) is not None
    ]
    return sorted(seen, key=lambda pair: (pair[0], pair[1].issue.number))


def _earlier(
    seen: Sequence[tuple[Version, ListedFailure]], low: Version | None, words: IssueWords
) -> Iterable[RangeWitness]:
    """Yield reports of the failure in or before the last version reported as working."""
    early = [(version, one) for version, one in seen if low is not None and version <= low]
    for version, one in early[:EARLIER_MAX]:
        yield RangeWitness.based_on(
            one.issue,
            span=Regression(first_failing=str(version)),
            agrees=False,
            reason=f"reported from {version}, where others say that it worked",
            quotes=words.stated(one.issue.number, (REPORTED,))[:1],
        )


def _disagreement(one: _Witness, low: Version | None, high: Version | None) -> str:
    if one.low is None and one.high is None:
        return "its versions have no place in the order of releases"
    if low is None and high is None:
        return "other reports met the failure in earlier versions"
    if one.high is not None and low is not None and one.high <= low:
        return f"says that it fails in {one.high}, where others say that it worked"
    if one.low is not None and high is not None and one.low >= high:
        return f"says that it works in {one.low}, where others say that it failed"
    return "its range lies elsewhere"


def _witness(one: _Witness, words: IssueWords, reason: str = "", *, agrees: bool = True) -> RangeWitness:
    quotes = words.stated(one.one.issue.number, REGRESSION_FIELDS)[:QUOTES_MAX]
    return RangeWitness.based_on(one.one.issue, span=one.span, agrees=agrees, reason=reason, quotes=quotes)
