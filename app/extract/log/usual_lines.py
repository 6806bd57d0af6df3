"""Lines that healthy servers print too, so that they say nothing of a failure.

In: a log's lines. Out: whether a line is usual. The list (`lists/usual_lines.txt`) holds the shapes of the
lines of good starts, requests and ends of many releases, made by `app.train.usual_lines`. A shape is the
first words of a line, with `#` for each that holds more than letters.
"""

from __future__ import annotations

from functools import lru_cache

from app.extract.lists import read_lines
from app.extract.log.lines import LOUD, LogLine

SHAPE_WORDS = 8
MAX_WORD_CHARS = 30


def is_usual(line: LogLine) -> bool:
    """Whether a good run prints such a line; never of a line that is logged as an error."""
    return line.level not in LOUD and shape_of(line.text) in _usual_shapes()


def shape_of(text: str) -> str:
    """The shape of a line's words: `loading weights took # seconds`."""
    words = text[:400].lower().split(maxsplit=SHAPE_WORDS)[:SHAPE_WORDS]
    return " ".join(_plain(word) for word in words)


def _plain(word: str) -> str:
    bare = word.strip(".,:;()[]'\"`")
    return bare if bare.replace("_", "").replace("-", "").isalpha() and len(bare) <= MAX_WORD_CHARS else "#"


@lru_cache(maxsize=1)
def _usual_shapes() -> frozenset[str]:
    return frozenset(read_lines("usual_lines"))
