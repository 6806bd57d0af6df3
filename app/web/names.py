"""Names that a caller spelled wrong: the nearest of ours, and whether his can be repeated to him."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_GIVEN_CHARS = 200
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The name that is spelled most alike, or else the first that is made of the same words."""
    names = list(known)
    if near := get_close_matches(given[:_GIVEN_CHARS], names, n=1):
        return near[0]
    words = _words(given[:_GIVEN_CHARS])
    return next((name for name in names if len(words) > 1 and _words(name) == words), None)


def _words(name: str) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in re.split(r"[._-]", name.lower()))


def plain_name(name: str, otherwise: str) -> str:
    """A name that a caller sent, if it can be repeated to him; else `otherwise`."""
    return name if _PLAIN_NAME.fullmatch(name) else otherwise
