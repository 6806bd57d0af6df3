"""Patterns are compiled by RE2: linear time, and its syntax."""

from __future__ import annotations

import sys
from random import Random

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from app.extract.rules.patterns import PatternSet, escape, pattern
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


@pytest.mark.parametrize("text", ["ab 12, b 3", "äb 12, b 3, é", "", " "])
@pytest.mark.parametrize("source", [r"(?P<word>\w+) (\d+)?", "", "b*", r"(x)|(\d)$"])
@pytest.mark.parametrize("part", [(), (1,), (3, 7), (7, 3), (-2, 99)])
def test_the_same_is_found_as_by_the_library(source: str, text: str, part: tuple[int, ...]) -> None:
    ours, theirs = pattern(source), re2.compile(source)

    for find in ("search", "match", "fullmatch"):
        found, wanted = getattr(ours, find)(text, *part), getattr(theirs, find)(text, *part)
        assert (found and (found.span(), found.groups())) == (wanted and (wanted.span(), wanted.groups()))
    for found, wanted in zip(ours.finditer(text, *part), theirs.finditer(text, *part), strict=True):
        assert (found.span(), found.groupdict()) == (wanted.span(), wanted.groupdict())
        assert (found.string, found.pos, found.endpos) == (wanted.string, wanted.pos, wanted.endpos)
    assert ours.sub("<\\g<0>>", text) == theirs.sub("<\\g<0>>", text)


def test_what_cannot_be_read_in_linear_time_is_refused() -> None:
    with pytest.raises(re2.error):
        pattern(r"(a)\1").search("aa")


def test_half_of_a_sign_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        pattern("a").search("a\ud800")


def test_a_set_gives_the_positions_of_the_patterns_found() -> None:
    assert PatternSet(["a+", escape("b."), "c"]).matching("cab") == [0, 2]


def test_a_set_without_patterns_finds_nothing() -> None:
    assert PatternSet([]).matching("a") == []


def test_a_set_refuses_what_is_no_pattern() -> None:
    with pytest.raises(re2.error):
        PatternSet(["("]).matching("a")


MIXED = (
    "(?i)straße",
    "É[a-z]+",
    "(?i)k8",
    r"\bab\b[^.]{0,30}cd",
    "[0-9]{3}",
    "",
    "x?",
    "没用|不行",
    "(?i)É|kb",
)


@given(st.text(alphabet="aAbBcCdDkKxX\u212a8159. éÉßsStTrRaAeE没用不行", max_size=60))
def test_a_set_finds_what_its_patterns_find_one_by_one(text: str) -> None:
    alone = [at for at, source in enumerate(MIXED) if pattern(source).search(text)]
    assert PatternSet(MIXED).matching(text) == alone


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is read as Linux gives it")
def test_an_automaton_forgets_its_states_where_its_room_ends_and_still_finds_all() -> None:
    many_states = PatternSet(["a[ab]{20}c", "no"])
    ends = pattern("a[ab]{20}c")
    random = Random(1)
    texts = ["".join(random.choices("ab", k=200_000)) + "ca" for _ in range(3)]
    before = resident_mib()
    for text in texts:
        assert many_states.matching(text + "no") == ([0, 1] if text[-23] == "a" else [1])
        assert bool(ends.search(text)) == (text[-23] == "a")
    assert resident_mib() - before < 30
