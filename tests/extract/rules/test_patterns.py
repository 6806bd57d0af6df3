"""A compiled pattern answers as the package's own layer around RE2 does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.rules.patterns import Pattern, pattern, quick

PATTERNS = [
    "a",
    "x*",
    "(a+)|(b)(c)?",
    "^ *(?P<word>[a-z]+)(?P<number>1)?",
    r"\b(\d)\b",
    "(?m)^.*$",
    "(é+)b?",
    "((a)b)|(a(b))",
]
TEXTS = st.text(alphabet="abc 1x\né", max_size=24)


def shown(found: Any) -> Any:
    """All that a match tells."""
    if found is None:
        return None
    spans = [found.span(at) for at in range(found.re.groups + 1)]
    ends = [(found.start(at), found.end(at), found.group(at), found[at]) for at in range(found.re.groups + 1)]
    return (
        spans,
        ends,
        found.groups(),
        found.groups("-"),
        found.groupdict(),
        found.lastindex,
        found.group(),
        found.string,
    )


@pytest.mark.parametrize("written", PATTERNS)
@given(text=TEXTS)
def test_it_finds_what_the_package_finds(written: str, text: str) -> None:
    own = pattern(written)
    theirs = own._compiled
    for asked in (text, text.encode()):
        assert shown(own.search(asked)) == shown(theirs.search(asked))
        assert shown(own.match(asked)) == shown(theirs.match(asked))
        assert shown(own.fullmatch(asked)) == shown(theirs.fullmatch(asked))
        assert [*map(shown, own.finditer(asked))] == [*map(shown, theirs.finditer(asked))]
    assert own.findall(text) == theirs.findall(text)
    assert own.split(text) == theirs.split(text)


@given(written=st.sampled_from(PATTERNS), text=TEXTS, start=st.integers(0, 30), end=st.integers(0, 30))
def test_it_looks_within_the_same_places(written: str, text: str, start: int, end: int) -> None:
    own = pattern(written)
    assert shown(own.search(text, start, end)) == shown(own._compiled.search(text, start, end))
    assert shown(own.match(text, start)) == shown(own._compiled.match(text, start))
    assert [*map(shown, own.finditer(text, start))] == [*map(shown, own._compiled.finditer(text, start))]


@given(
    written=st.sampled_from(PATTERNS),
    text=TEXTS,
    count=st.integers(0, 3),
    words=st.sampled_from(["", "-", r"<\g<0>>"]),
)
def test_it_replaces_what_the_package_replaces(written: str, text: str, count: int, words: str) -> None:
    own = pattern(written)
    assert own.sub(words, text, count) == own._compiled.sub(words, text, count)
    assert own.sub(lambda found: f"<{found.span()}>", text) == own._compiled.sub(
        lambda found: f"<{found.span()}>", text
    )


def test_a_group_is_told_by_its_name() -> None:
    found = pattern(r"(?P<word>[a-z]+)(?P<number>\d)?").search("- ab")
    assert (found.group("word"), found.span("word"), found["number"], found.end("number")) == (
        "ab",
        (2, 4),
        None,
        -1,
    )


def test_half_of_a_sign_is_refused_as_before() -> None:
    with pytest.raises(UnicodeEncodeError):
        pattern("a").search("a\ud800")


def test_the_installed_package_is_asked_without_its_own_layer() -> None:
    assert isinstance(pattern("a"), Pattern)


def test_another_release_of_the_package_answers_by_itself() -> None:
    class Compiled:
        """A pattern of a release without the binding."""

    compiled = Compiled()
    assert quick(compiled) is compiled
