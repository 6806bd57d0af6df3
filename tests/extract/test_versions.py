"""The order of versions: what has a place in it, and what is never compared."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.extract.facts import Regression
from app.extract.versions import (
    check_version,
    is_before,
    is_same,
    last_failing,
    newest,
    oldest,
    ordered,
    sort_key,
)
from app.knowledge.fix.decide import seen_from
from app.knowledge.fix.shapes import FixTruth, FixView, Held
from app.knowledge.version.regressions import basis_of, place_of
from app.web.views.version_line import version_line

UNPLACED = ("0.1.dev3151+g31c7178", "0.1.dev1", "0.0.0", "0.0", "main", "nightly", "73f48ce55", "1234567", "")


@pytest.mark.parametrize("build", UNPLACED)
def test_what_has_no_place_in_the_order_is_never_before_or_after(build: str) -> None:
    assert ordered(build) is None
    assert not is_before(build, "0.9.0")
    assert not is_before("0.9.0", build)
    assert newest([build, "0.9.0"]) == oldest([build, "0.9.0"]) == "0.9.0"


@pytest.mark.parametrize("text", [None, "v0.19.0", "0.20.x", "0.5.4@1f26efb", "main", "73f48ce55"])
def test_a_version_as_people_write_it_is_taken(text: str | None) -> None:
    assert check_version(text) == text


@pytest.mark.parametrize("text", ["banana", "<script>", "the newest one"])
def test_what_cannot_be_a_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no version such as"):
        check_version(text)


@pytest.mark.parametrize("build", UNPLACED[:4])
def test_every_answer_about_an_untagged_build_is_unknown(build: str) -> None:
    """One place said "unknown" before, another "upgrade", a third "before it began"."""
    release = ordered("0.9.0")
    assert release is not None
    fixed = FixView(state="fixed", pr="#1", released_in="0.9.0", source="release notes", reason="")
    assert seen_from(FixTruth(fixed, Held(full=(release,), released=(release,))), build).for_you == "unknown"
    span = Regression(last_working="0.8.0", first_failing="0.8.5", fixed_in="0.9.0")
    assert "you" not in {station.mood for station in version_line(span, build, None)}
    assert basis_of(build, span, is_reported=False) is None
    assert place_of(span, build) is None


def test_versions_are_ordered_by_pep_440_and_not_as_text() -> None:
    names = [
        "0.9.0",
        "0.10.0rc1",
        "v0.10.0",
        "0.10.0.post1",
        "0.10.1+cu121",
        "0.18.1rc1.dev9",
        "0.18.1rc1.dev227+g73f48ce55",
        "0.18.1rc1",
        "0.18.1",
    ]
    assert sorted(sorted(names), key=sort_key) == names
    assert all(is_before(one, other) for one, other in pairwise(names))
    assert newest(names) == "0.18.1"


def test_one_version_has_many_spellings() -> None:
    assert is_same("0.9", "v0.9.0")
    assert is_same("0.9.0+cu129", "0.9.0")
    assert is_same(" V0.9.0 ", "0.9.0")
    assert not is_same("0.9.0rc1", "0.9.0")
    assert is_same("0.1.dev3151+g31c7178", "0.1.dev3151+g31c7178")
    assert not is_same("0.1.dev3151+g31c7178", "0.1.dev3151+gffffff0")
    assert not is_same(None, "0.9.0")


def test_the_last_failing_version_is_the_newest_with_a_place() -> None:
    span = Regression(first_failing="0.9.0", still_failing=("0.10.1", "0.9.2", "main"))
    assert last_failing(span) == "0.10.1"
    assert last_failing(Regression(first_failing="main")) is None


def test_the_days_of_nightly_builds_have_an_order_among_themselves_only() -> None:
    assert is_before("2026-03-11", "20260312")
    assert not is_before("2026-03-12", "2026-03-12")
    assert is_same("2026-03-12", "20260312")
    assert not is_before("0.9.0", "2026-03-12")
    assert not is_before("2026-03-12", "0.9.0")
    assert sorted(["2026-03-12", "0.9.0", "2026-03-11"], key=sort_key) == [
        "2026-03-11",
        "2026-03-12",
        "0.9.0",
    ]
