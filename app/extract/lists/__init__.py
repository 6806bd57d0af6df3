"""Vocabulary and rules as data: read once, checked on load. How to edit them: README.md."""

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=64)
def load(name: str) -> dict[str, Any]:
    """One list as the TOML file `lists/<name>.toml` holds it; callers must not change it."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))


def read_lines(name: str) -> list[str]:
    """The lines of the text file `lists/<name>.txt`."""
    return (files(__package__) / f"{name}.txt").read_text(encoding="utf-8").splitlines()


FORM_HEADINGS = frozenset(heading.lower() for heading in load("headings")["headings"])
"""Headings of vLLM's issue forms and of common free-form reports, in lower case."""
