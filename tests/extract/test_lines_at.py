"""Lines by their position are those that the text is cut into."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.text.blocks import LinesAt, cut_lines

FLATTENED = "### Your current environment " + "INFO 09-01 10:00:00 [core.py:1] loading " * 40
TEXTS = st.text(alphabet="ab \r\n", max_size=60) | st.just(FLATTENED)


@given(TEXTS)
def test_each_line_is_the_one_that_cutting_gives(text: str) -> None:
    lines = LinesAt(text)

    cut = list(cut_lines(text))

    assert [lines[at] for at in range(len(cut))] == cut


@given(TEXTS, st.integers(-2, 70))
def test_a_place_is_found_in_the_last_line_that_begins_before_it(text: str, spot: int) -> None:
    cut = list(cut_lines(text))
    last = max((at for at, line in enumerate(cut) if line.start <= spot), default=None)

    assert LinesAt(text).at(spot) == (last if last is not None and spot <= cut[last].end else None)


@pytest.mark.parametrize("text", ["", "\n", "one\r\ntwo\n"])
def test_the_last_line_may_be_empty(text: str) -> None:
    assert LinesAt(text)[text.count("\n")].text == ""
