"""Patterns are compiled by RE2: linear time, and its syntax."""

from __future__ import annotations

import sys
from random import Random

import pytest
import re2

from app.extract.rules.patterns import escape, pattern, pattern_set
from tests.memory import resident_mib


def test_a_group_is_found_by_its_name() -> None:
    found = pattern(r"(?P<word>[a-z]+)(?P<number>\d)?").search("- ab")

    assert (found.group("word"), found.span(1), found.group("number"), found.end(2)) == (
        "ab",
        (2, 4),
        None,
        -1,
    )


def test_case_and_lines_count_as_asked() -> None:
    assert pattern("^b", ignore_case=True, multiline=True).search("a\nB") is not None
    assert pattern("^b").search("a\nb") is None


def test_what_cannot_be_read_in_linear_time_is_refused() -> None:
    with pytest.raises(re2.error):
        pattern(r"(a)\1").search("aa")


def test_half_of_a_sign_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        pattern("a").search("a\ud800")


def test_a_set_gives_the_positions_of_the_patterns_found() -> None:
    assert sorted(pattern_set(["a+", escape("b."), "c"]).Match("cab")) == [0, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is read as Linux gives it")
def test_an_automaton_forgets_its_states_where_its_room_ends_and_still_finds_all() -> None:
    many_states = pattern_set(["a[ab]{20}c", "no"])
    ends = pattern("a[ab]{20}c")
    random = Random(1)
    texts = ["".join(random.choices("ab", k=200_000)) + "ca" for _ in range(3)]
    before = resident_mib()
    for text in texts:
        assert many_states.Match(text + "no") == ([0, 1] if text[-23] == "a" else [1])
        assert bool(ends.search(text)) == (text[-23] == "a")
    assert resident_mib() - before < 30
