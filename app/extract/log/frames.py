"""Parse traceback frames in all formats, and recognise plumbing: frames that every traceback contains.

In: a line's text. Out: a `Frame` (file and function, no line number), or None. Supported formats: Python,
IPython, pytest, rich boxes, faulthandler stacks and embedded Python. `join_frames` rejoins frames that a
narrow terminal wrapped over several lines.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.log.lines import LogLine
from app.extract.rules.patterns import escape, pattern

MAX_PARTS = 3
MIN_WRAPPED_CHARS = 70
"""Minimum length of a line that a terminal may have wrapped."""


def join_frames(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines with wrapped frames rejoined."""
    joined: list[LogLine] = []
    at = 0
    while at < len(lines):
        line, parts = _rejoined(lines[at : at + MAX_PARTS])
        joined.append(line)
        at += parts
    return joined


def _rejoined(lines: Sequence[LogLine]) -> tuple[LogLine, int]:
    """Rejoin a frame with its continuation lines; return it with the number of lines it takes."""
    line, *rest = lines
    text = line.text.rstrip("\r")
    if 'File "' not in text or len(line.raw) < MIN_WRAPPED_CHARS:
        return line, 1
    found = PYTHON.search(text)
    if found is not None and found.group(2) and found.end() == len(text):
        return line, 1
    for parts, below in enumerate(itertools.takewhile(_may_continue, rest), 2):
        text += below.text
        whole = PYTHON.search(text)
        if whole is not None and whole.group(2) and whole.end() > len(line.text):
            return replace(line, text=text), parts
    return line, 1


def _may_continue(line: LogLine) -> bool:
    """True if a line may continue the one above: no log prefix, no indentation of code."""
    text = line.text
    return not line.level and not line.process and text[:2] != "  " and 'File "' not in text


PYTHON = pattern(r"File \"([^\"]{1,400})\", line \d{1,7}(?:,? in ([\w<>.$-]{1,80}))?")
_NOTEBOOK = pattern(
    r"^(?:File |\[)?([~/\w.-][^\s:()'\"]{0,300}\.pyx?)(?::\d{1,7},|\]\([^\s()]{1,400}\))?"
    r" in ([\w<>.]{1,120})\("
)
_NUMBERED = pattern(
    r"^(?:\d+ +|at )?([~/\w.-][^\s:()'\"]{0,300}\.pyx?):\d{1,7}:? in ([\w<>.]{1,120})[ \t│]*$"
)
_TEST_PLACE = pattern(r"^([/\w.-]{1,300}\.py):\d{1,7}: ?(\w{0,80})$")
_EMBEDDED = pattern(r"^[ \t]*([~/\w.-][^\s:()'\"]{0,300}\.pyx?)\(\d{1,7}\): ([\w<>.]{1,120})$")
_STANDARD = pattern(r"(?:/lib(?:64)?/python3|/python3(?:\.\d+)?/[\w.]+$)")
"""Paths of the standard library."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A traceback frame without its line number: file path as printed, and function."""

    path: str
    function: str

    @property
    def file(self) -> str:
        """The file name without directories."""
        return self.path.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def place(self) -> str:
        """`file.py:function`."""
        return f"{self.file}:{self.function}" if self.function else self.file


def other_frame(text: str) -> Frame | None:
    """Parse a frame in the format of IPython, pytest or rich; Python's own is matched by `PYTHON`."""
    if " in " not in text:
        return None
    text = text.strip(" \t")
    found = _NOTEBOOK.match(text) or _NUMBERED.match(text)
    return Frame(found.group(1), str(found.group(2)).rsplit(".", 1)[-1]) if found else None


def pytest_place(text: str) -> tuple[str, str] | None:
    """Parse pytest's `tests/test_x.py:178: AssertionError` into file and error; the error may be empty."""
    if ".py:" not in text:
        return None
    found = _TEST_PLACE.match(text.strip(" \t"))
    return (found.group(1), found.group(2)) if found else None


def stack_frame(text: str) -> Frame | None:
    """Parse a frame of a stack that is printed innermost first, below its fault."""
    found: Any = PYTHON.search(text) if 'File "' in text else _EMBEDDED.match(text)
    return Frame(found.group(1), found.group(2) or "") if found else None


@lru_cache(maxsize=2048)
def is_plumbing(frame: Frame, *, raised: bool = False) -> bool:
    """True if a frame occurs in every traceback of its kind and identifies nothing.

    Args:
        raised: the frame raised the error, so that a generic function name does not disqualify it.
    """
    paths, functions = _plumbing()
    path = frame.path.replace("\\", "/")
    if "/python3" in path and "-packages/" not in path and _STANDARD.search(path):
        return True
    package = path.rfind("-packages/")  # the directories above an installed package may have any name
    whole = f"{path[package + 9 :] if package >= 0 else path}:{frame.function}"
    return paths.search(whole) is not None or (
        frame.function in functions and not (raised and package >= 0 and "/vllm/" not in whole)
    )


@lru_cache(maxsize=1)
def _plumbing() -> tuple[Any, frozenset[str]]:
    """Return one pattern for plumbing paths, and the names of plumbing functions."""
    names = load("plumbing")
    return pattern("|".join(escape(part) for part in names["paths"])), frozenset(names["functions"])


def decisive_frame(frames: Sequence[Frame]) -> str | None:
    """Return the innermost frame that is not plumbing, as `file.py:function`."""
    decisive = next((f for f in reversed(frames) if not is_plumbing(f, raised=f is frames[-1])), None)
    if frames and frames[-1].path == "<string>":
        decisive = frames[-1]
    if decisive is None and frames:
        decisive = next((f for f in reversed(frames) if "<frozen" not in f.path), frames[-1])
    return decisive.place if decisive else None
