"""The version timeline of a regression: where it worked, where it failed, and the caller's version.

Input: a regression as stated in its issue, the caller's version, the newest known release. Output: the
stations, oldest first; versions without reports are a gap. The timeline is not to scale.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from app.extract.facts import Regression
from app.extract.versions import is_before, last_failing, ordered, sort_key
from app.extract.versions import newest as newest_of
from app.knowledge.diagnosis.shapes import Match
from app.knowledge.issue.report import ReportFact
from app.web.views.filters import version

Mood = Literal["good", "culprit", "bad", "you", "gap"]


@dataclass(frozen=True, slots=True)
class Station:
    """A point on the timeline; `field` is the regression field it comes from, to look up its evidence."""

    mood: Mood
    word: str
    version: str
    note: str = ""
    field: str = ""
    bad: bool = False


def version_line(regression: Regression | None, yours: str | None, newest: str | None) -> tuple[Station, ...]:
    """Return the stations, oldest first; none without a regression."""
    if regression is None:
        return ()
    stations = _known_stations(regression)
    if stations and yours:
        stations = _with_you(stations, version(yours), regression)
    return tuple(stations) if regression.fixed_in else (*stations, *_gap(stations, newest))


def match_stations(
    match: Match | None, repo: str, yours: str | None, newest: str | None
) -> tuple[Station, ...]:
    """Return the timeline of a match; versions of `repo`, the default one, apply only to its own issues."""
    if match is None:
        return ()
    own = match.repo == repo
    return version_line(match.regression, yours if own else None, newest if own else None)


def report_stations(points: Iterable[ReportFact], newest: str | None) -> tuple[Station, ...]:
    """Return the stations of a report's regression range."""
    values: dict[str, Any] = {}
    for point in points:
        field = point.field.removeprefix("regression.")
        values[field] = (*values.get(field, ()), point.value) if field == "still_failing" else point.value
    return version_line(Regression(**values), None, newest) if values else ()


def _known_stations(regression: Regression) -> list[Station]:
    """Return the stated points in chronological order."""
    still = [version(item) for item in regression.still_failing]
    if all(ordered(item) for item in still):
        still.sort(key=sort_key)
    stations = (
        Station("good", "last working", version(regression.last_working), field="last_working"),
        Station("culprit", "culprit", regression.culprit or "", field="culprit"),
        Station("bad", "first failing", version(regression.first_failing), field="first_failing"),
        *(Station("bad", "still failing", item, field="still_failing") for item in still),
        Station("good", "fixed in", version(regression.fixed_in), field="fixed_in"),
    )
    return [station for station in stations if station.version]


def _with_you(stations: list[Station], yours: str, regression: Regression) -> list[Station]:
    """Insert the caller's version; leave it out if it cannot be ordered."""
    mine = ordered(yours)
    if mine is None:
        return stations
    # a culprit and an unparsable version have no order: both stay where they are
    places = [ordered(station.version) for station in stations]
    place = max(
        (at + 1 for at, theirs in enumerate(places) if theirs is not None and theirs <= mine), default=0
    )
    spoken = regression.last_working, regression.first_failing, regression.fixed_in, last_failing(regression)
    worked, first, fixed, failed = map(ordered, spoken)
    # After the last report, if there is no fix, it is unknown whether it fails.
    inside = first is not None and first <= mine
    inside = inside and (mine < fixed if fixed is not None else failed is not None and mine <= failed)
    note = "inside the failing range" if inside else ""
    if worked is not None and mine <= worked:
        note = "before it began"
    elif fixed is not None and mine >= fixed:
        note = "after the fix"
    you = Station("you", "you", yours, note=note, bad=inside)
    return [*stations[:place], you, *stations[place:]]


def _gap(stations: list[Station], newest: str | None) -> tuple[Station, ...]:
    """Return the gap between the last station and the newest known release, if any."""
    if not stations or not newest or not is_before(newest_of(item.version for item in stations), newest):
        return ()
    return (Station("gap", "no report", f"up to {version(newest)}", note="unknown"),)
