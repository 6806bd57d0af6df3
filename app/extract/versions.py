"""vLLM's versions in their order (PEP 440); what has no place in it is kept apart.

A commit, a branch such as `main`, and a build of a checkout without tags (`0.1.dev3151+g31c7178`, `0.0.0`)
say nothing of what came before them: they are compared by their text alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from app.extract.facts import Regression

_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@lru_cache(maxsize=8192)
def ordered(text: str | None) -> Version | None:
    """The version without its local part (`+cu129`); None where it has no place in the order."""
    plain = (text or "").strip().lower().removeprefix("v")
    if _COMMIT.fullmatch(plain):
        return None
    try:
        version = Version(Version(plain).public)
    except InvalidVersion:
        return None
    untagged = version.release[:2] == (0, 0) or (version.release == (0, 1) and version.is_devrelease)
    return None if untagged else version


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two texts name one version."""
    if not one or not other:
        return False
    first, second = ordered(one), ordered(other)
    if first is None or second is None:
        return plain_version(one) == plain_version(other)
    return first == second


def plain_version(text: str) -> str:
    """A version's text as versions without an order are compared."""
    return text.strip().lower().removeprefix("v")


def is_before(one: str | None, other: str | None) -> bool:
    """Whether one version is known to come before the other."""
    first, second = ordered(one), ordered(other)
    return first is not None and second is not None and first < second


def last_failing(told: Regression) -> str | None:
    """The newest version that is said to fail."""
    said = [item for item in (told.first_failing, *told.still_failing) if ordered(item) is not None]
    return max(said, key=lambda item: ordered(item) or Version("0"), default=None)
