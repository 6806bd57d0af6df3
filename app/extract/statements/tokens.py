"""Split a sentence into tokens: words, and names of settings, versions and changes as one token each.

In: a text. Out: `Token`s with their offsets. `kind` is the class of a name (`FLAG`, `VERSION` …), so that
training generalises from one flag to all, or the stem of a plain word.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from app.extract.rules.patterns import PatternSet, pattern

MAX_TOKENS = 160
"""Sentences are cut at 600 characters; one with more tokens than this is a table."""

NAMED = frozenset(
    ["FLAG", "ENV", "SETTING", "PIN", "VERSION", "IDENTIFIER", "COMMIT", "ISSUE", "CODE", "URL"]
)
"""Kinds of names that can be set, installed or looked up."""

_TOKEN = re.compile(
    r"`[^`\n]{1,90}`"
    r"|--?[A-Za-z][\w.-]*(?:=[^\s,;)`]*[^\s,;)`.:]| [\d.]*\d\b| (?:[Tt]rue|[Ff]alse|[Nn]one|auto)\b)?"
    r"|https?://[^\s)>\]]+"
    r"|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+(?: ?= ?[\w./'\"-]*[\w/'\"-])?"
    r"|\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+(?: ?= ?[\w./'\"-]*[\w/'\"-])?"
    r"|#\d+"
    r"|\bv?\d+(?:\.\d+)+(?:[.+-]?[A-Za-z0-9_]+)*"
    r"|\w+(?:['’-]\w+)*(?:==?['\"]?[\w.]*\w['\"]?)?"
    r"|[^\w\s]",
    re.ASCII,
)
"""Python's own engine: a seventh of RE2's time for so many short matches. Nothing that could fail follows a
nested repetition, so that none is tried in a second way, and `MAX_TOKENS` bounds the matches."""
_VERSION = pattern(r"(?i)^v?\d+\.\d+(?:\.\d+)*(?:[.+-]?\w+)*$")
_COMMIT = pattern(r"^[0-9a-f]{7,40}$")
_PRECISION = pattern(r"^(?:fp|bf|int|float|bfloat|w|mxfp|nvfp)\d|^(?:v0|v1|fa2|fa3)$")
_CHIP = pattern(r"^(?:a|h|b|l|rtx|v|mi|gb|gh)?\d{2,4}[a-z]{0,3}$")
_ENV = pattern(r"^(?:export )?[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_KINDS = {
    "FLAG": r"^-[^\n]{2}",
    "URL": r"^http",
    "ENV": _ENV.pattern,
    "SETTING": r"^[^=]*_[^=]*=|^\w[\w-]*=[^=]",
    "IDENTIFIER": r"_",
    "ISSUE": r"^#\d",
    "VERSION": _VERSION.pattern,
    "PIN": r"==",
    "NUMBER": r"^\d+$",
}
"""Kinds of names by pattern; the first that matches is a word's kind."""
_KIND_NAMES = tuple(_KINDS)
_KIND_PATTERNS = PatternSet(_KINDS.values())
_ENDINGS = ("ing", "ed", "es", "ly", "s", "e")
MIN_STEM = 3
MIN_STEMMED = 5


class Token(NamedTuple):
    """A token: text, offsets in the sentence, kind, and lower-case form."""

    text: str
    start: int
    end: int
    kind: str
    low: str


@lru_cache(maxsize=64)
def tokenise(text: str) -> tuple[Token, ...]:
    """Return the tokens of a sentence, at most `MAX_TOKENS`."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        word = match.group(0)
        low = word.lower().replace("’", "'")
        found.append(Token(word, match.start(), match.end(), _kind(word), low))
        if len(found) == MAX_TOKENS:
            break
    return tuple(found)


@lru_cache(maxsize=1 << 15)
def _kind(word: str) -> str:
    """Return the kind of a name, or the stem of a plain word."""
    low = word.lower().replace("’", "'")
    if word.isalpha():
        return _stem(low)
    if word[0] == "`" and len(word) > 1:
        return _kind_in_backticks(word.strip("`"))
    if matching := _KIND_PATTERNS.matching(word):
        return _KIND_NAMES[matching[0]]
    return low if _PRECISION.search(low) else _kind_with_digits(low) or _stem(low)


def _kind_with_digits(low: str) -> str:
    """Return the kind of a word with digits; "" for a word without."""
    if not any(sign.isdigit() for sign in low):
        return ""
    if _COMMIT.search(low) and not low.isalpha():
        return "COMMIT"
    return "CHIP" if _CHIP.search(low) else "MIXED"


def _kind_in_backticks(inside: str) -> str:
    if inside.startswith("-"):
        return "FLAG"
    if _ENV.search(inside):
        return "ENV"
    if _VERSION.search(inside):
        return "VERSION"
    if _COMMIT.search(inside) and not inside.isalpha():
        return "COMMIT"
    return "SETTING" if "=" in inside else "CODE"


def _stem(low: str) -> str:
    """Strip the ending of a word; short words stay unchanged."""
    if len(low) < MIN_STEMMED or not low.isalpha():
        return low
    for ending in _ENDINGS:
        if low.endswith(ending) and len(low) - len(ending) >= MIN_STEM:
            return low[: -len(ending)]
    return low
