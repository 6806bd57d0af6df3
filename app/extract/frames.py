"""Places in tracebacks: how each kind of program prints a frame, and which frames tell nothing.

In: a line's text. Out: a `Frame` (file and function, no line number), or None. Known are Python's own
tracebacks, notebooks, pytest, rich's boxes, the fault handler's stacks and the lists of embedded Pythons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.patterns import escape, pattern

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
"""Where the standard library lies."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in a traceback, without its line number: file path as printed and function."""

    path: str
    function: str

    @property
    def file(self) -> str:
        """The file's own name."""
        return self.path.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def place(self) -> str:
        """`file.py:function`."""
        return f"{self.file}:{self.function}" if self.function else self.file


def other_frame(text: str) -> Frame | None:
    """The frame that a notebook, a test run or rich prints; Python's own form is `PYTHON`."""
    if " in " not in text:
        return None
    text = text.strip(" \t")
    found = _NOTEBOOK.match(text) or _NUMBERED.match(text)
    return Frame(found.group(1), str(found.group(2)).rsplit(".", 1)[-1]) if found else None


def pytest_place(text: str) -> tuple[str, str] | None:
    """File and error of a test run's `tests/test_x.py:178: AssertionError`; the error may be missing."""
    if ".py:" not in text:
        return None
    found = _TEST_PLACE.match(text.strip(" \t"))
    return (found.group(1), found.group(2)) if found else None


def stack_frame(text: str) -> Frame | None:
    """A frame of a stack that is printed innermost first, below the fault it belongs to."""
    found: Any = PYTHON.search(text) if 'File "' in text else _EMBEDDED.match(text)
    return Frame(found.group(1), found.group(2) or "") if found else None


def is_plumbing(frame: Frame, *, raised: bool = False) -> bool:
    """Whether a frame stands in every traceback of its kind and tells nothing.

    Args:
        raised: it is the innermost one: the error was raised there, whatever the function's name is.
    """
    paths, functions = _plumbing()
    path = frame.path.replace("\\", "/")
    if "/python3" in path and "-packages/" not in path and _STANDARD.search(path):
        return True
    package = path.rfind("-packages/")  # a package's own path: where it is installed may hold any name
    whole = f"{path[package + 9 :] if package >= 0 else path}:{frame.function}"
    return paths.search(whole) is not None or (
        frame.function in functions and not (raised and package >= 0 and "/vllm/" not in whole)
    )


@lru_cache(maxsize=1)
def _plumbing() -> tuple[Any, frozenset[str]]:
    """What stands in the places that tell nothing as one pattern, and the functions that tell nothing."""
    names = load("plumbing")
    return pattern("|".join(escape(part) for part in names["paths"])), frozenset(names["functions"])


def telling_frame(frames: Sequence[Frame]) -> str | None:
    """The innermost place that is no plumbing: file.py:function."""
    telling = next((f for f in reversed(frames) if not is_plumbing(f, raised=f is frames[-1])), None)
    if frames and frames[-1].path == "<string>":
        telling = frames[-1]
    if telling is None and frames:
        telling = next((f for f in reversed(frames) if "<frozen" not in f.path), frames[-1])
    return telling.place if telling else None
