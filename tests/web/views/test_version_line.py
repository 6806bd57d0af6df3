"""The line of versions is in order, and holds nothing that nobody said."""

from __future__ import annotations

from app.extract.facts import Regression
from app.web.views.version_line import version_line


def words(regression: Regression | None, yours: str | None = None, newest: str | None = None) -> list[str]:
    return [f"{station.word} {station.version}" for station in version_line(regression, yours, newest)]


RANGE = Regression(
    last_working="0.6.1", first_failing="0.6.2", still_failing=("0.7.0", "0.6.5"), culprit="#1"
)


def test_stations_stand_in_order_of_time() -> None:
    assert words(RANGE) == [
        "last working 0.6.1",
        "culprit #1",
        "first failing 0.6.2",
        "still failing 0.6.5",
        "still failing 0.7.0",
    ]


def test_the_caller_stands_where_the_version_belongs() -> None:
    assert words(RANGE, "v0.6.3")[3] == "you 0.6.3"
    assert words(RANGE, "0.5")[0] == "you 0.5"
    assert words(RANGE, "0.9", "0.9.1")[-2:] == ["you 0.9", "no report up to 0.9.1"]


def test_a_version_that_cannot_be_ordered_is_left_out() -> None:
    assert words(RANGE, "nightly") == words(RANGE)


def test_what_comes_after_the_last_report_is_a_gap_unless_it_was_fixed() -> None:
    assert words(RANGE, None, "v0.8.0")[-1] == "no report up to 0.8.0"
    assert words(RANGE.model_copy(update={"fixed_in": "0.7.1"}), None, "0.8.0")[-1] == "fixed in 0.7.1"


def test_without_a_regression_there_is_no_line() -> None:
    assert version_line(None, "0.6.1", "0.8.0") == ()
    assert version_line(Regression(), "0.6.1", "0.8.0") == ()


def test_a_caller_is_told_on_which_side_of_the_range_it_is() -> None:
    def note(yours: str) -> str:
        line = version_line(RANGE.model_copy(update={"fixed_in": "0.8.0"}), yours, None)
        return next(station.note for station in line if station.mood == "you")

    open_end = version_line(RANGE, "0.9", None)
    assert (open_end[-1].mood, open_end[-1].note, open_end[-1].bad) == ("you", "", False)
    assert (note("0.6.1"), note("0.6.4"), note("0.8.1")) == (
        "before it began",
        "inside the failing range",
        "after the fix",
    )
