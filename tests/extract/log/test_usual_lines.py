"""Lines that healthy servers print too."""

from __future__ import annotations

import pytest

from app.extract.log.lines import read_numbered
from app.extract.log.usual_lines import is_usual, shape_of
from app.extract.text.blocks import split_lines


def usual(log: str) -> list[bool]:
    return [is_usual(line) for line in read_numbered(enumerate(split_lines(log), 1))]


@pytest.mark.parametrize(
    "line",
    [
        "INFO:     Application startup complete.",
        "(APIServer pid=7) INFO 11-22 13:54:37 [api_server.py:500] Available routes are:",
    ],
)
def test_what_a_good_start_prints_is_usual_whoever_prints_it(line: str) -> None:
    assert usual(line) == [True]


def test_an_error_is_never_usual() -> None:
    line = "INFO 11-22 13:54:37 [api_server.py:500] Available routes are:"

    assert usual(line.replace("INFO", "ERROR")) == [False]


def test_a_line_that_no_good_run_prints_is_not_usual() -> None:
    assert usual("WARNING 11-22 13:54:37 [x.py:1] Falling back to a kernel that is not tuned") == [False]


def test_numbers_paths_and_values_do_not_change_a_shape() -> None:
    one = "Loading weights from /models/a took 3.21 seconds"

    assert shape_of(one) == shape_of("Loading weights from /srv/b took 188 seconds")
    assert shape_of(one) == "loading weights from # took # seconds"
