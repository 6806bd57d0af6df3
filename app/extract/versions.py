"""The order of versions (PEP 440). Every comparison of two versions goes through this module.

Some versions cannot be ordered: a commit, a branch such as `main`, and the placeholder version of a checkout
without tags (`0.1.dev3151+g31c7178`, `0.0.0`). For these, `is_before` is false both ways, and `is_same`
compares the texts. The days of nightly builds (`2026-04-16`, `20260416`) have an order among themselves only.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from app.extract.facts import Regression

__all__ = [
    "Version",
    "can_be_version",
    "check_version",
    "is_before",
    "is_same",
    "last_failing",
    "newest",
    "oldest",
    "ordered",
    "plain_version",
    "sort_key",
]

_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_BEGINS_AS_VERSION = re.compile(
    r"\d+(?:\.\d+)*(?:(?:\.?(?:rc|post|dev|a|b)\d*)*|\.[x*])(?![a-z0-9]|\.[a-z0-9])"
)
_DAY = re.compile(r"(20\d\d)-?([01]\d)-?([0-3]\d)")
_LOWEST = Version("0.dev0")


@lru_cache(maxsize=8192)
def ordered(text: str | None) -> Version | None:
    """Parse a version without its local part (`+cu129`); None if it cannot be ordered."""
    plain = plain_version(text or "")
    if _COMMIT.fullmatch(plain):
        return None
    try:
        version = Version(plain.partition("+")[0])
    except InvalidVersion:
        return None
    is_placeholder = not any(version.release) or (version.release == (0, 1) and version.is_devrelease)
    return None if is_placeholder else version


def can_be_version(text: str) -> bool:
    """True if a text is a version, a commit, or a name of the newest build."""
    plain = plain_version(text)
    if _COMMIT.fullmatch(plain) or plain in {"main", "nightly", "latest"}:
        return True
    try:
        return bool(Version(plain))
    except InvalidVersion:
        return False


def check_version(text: str | None) -> str | None:
    """Validate a version as people write it, such as `v0.19.0`, `0.20.x` or `0.5.4@1f26efb`; return it.

    Raises:
        ValueError: it does not start like a version, and is not a commit or the name of a build.
    """
    if text and not can_be_version(text) and not _BEGINS_AS_VERSION.match(plain_version(text)):
        raise ValueError("is no version such as 0.19.0, and no commit")
    return text


def is_same(one: str | None, other: str | None) -> bool:
    """True if two texts name the same version."""
    if not one or not other:
        return False
    first, second = ordered(one), ordered(other)
    if first is None or second is None:
        return plain_version(one) == plain_version(other) or (bool(_day(one)) and _day(one) == _day(other))
    return first == second


def plain_version(text: str) -> str:
    """Normalise a version's text, for versions that cannot be ordered."""
    return text.strip().lower().removeprefix("v")


def is_before(one: str | None, other: str | None) -> bool:
    """True if the first version is known to precede the other."""
    if not one or not other:
        return False
    first, second = ordered(one), ordered(other)
    if first is None or second is None:
        return bool(_day(one)) and _day(one) < _day(other)
    return first < second


def sort_key(text: str) -> tuple[Version, str]:
    """Return a sort key; versions that cannot be ordered come first, days in their order."""
    return ordered(text) or _LOWEST, _day(text)


def _day(text: str | None) -> str:
    """Return the day of a nightly build as eight digits; "" if the text is none."""
    found = _DAY.fullmatch(text or "")
    return "".join(found.groups()) if found else ""


def newest(texts: Iterable[str | None]) -> str | None:
    """Return the newest version; None if none can be ordered."""
    return max(_orderable(texts), key=sort_key, default=None)


def oldest(texts: Iterable[str | None]) -> str | None:
    """Return the oldest version; None if none can be ordered."""
    return min(_orderable(texts), key=sort_key, default=None)


def last_failing(regression: Regression) -> str | None:
    """Return the newest version that is known to fail."""
    return newest((regression.first_failing, *regression.still_failing))


def _orderable(texts: Iterable[str | None]) -> list[str]:
    return [text for text in texts if text and ordered(text) is not None]
