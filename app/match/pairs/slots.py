"""Find what two texts of one template differ in: `X does not support A` and `X does not support B`.

In: two titles or masked messages. Out: whether a place of the template that names what failed is filled in
differently. Numbers, paths and addresses vary between reports of one failure; names do not.
"""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

MAX_WORDS = 60

_PLACEHOLDER = re.compile(r"<[a-z]+\d*>")
_WORD = re.compile(r"[^\W\d_](?:[\w+-]|\.(?=[a-z\d]))*|\d+(?:\.\w+)+|\d+")
_DIGITS = re.compile(r"\d+")
_STATUS = re.compile(r"[45]\d\d")


def differ_in_words(one: str, two: str) -> bool:
    """True if two masked messages have other words at one place, apart from numbers within words.

    One that goes on where the other ends, or that is cut off in a word, does not differ.
    """
    return any(_are_other_words(mine, theirs) for mine, theirs, _ in _slots(one, two))


def differ_within(one: str, two: str) -> bool:
    """Like `differ_in_words`, only between words that both have: one text may stand inside the other."""
    return any(_are_other_words(mine, theirs) for mine, theirs, is_inside in _slots(one, two) if is_inside)


def differ_in_names(one: str, two: str) -> bool:
    """True if two titles have different names, versions or HTTP status codes at one place."""
    return any(
        any(map(_is_name, mine)) and any(map(_is_name, theirs)) for mine, theirs, _ in _slots(one, two)
    )


def _slots(one: str, two: str) -> Iterator[tuple[list[str], list[str], bool]]:
    """Yield the places where words were replaced, and whether each is between words that both have."""
    mine, theirs = map(_words, sorted((one, two)))  # the matcher is not symmetric
    matcher = SequenceMatcher(None, [w.lower() for w in mine], [w.lower() for w in theirs], autojunk=False)
    steps = matcher.get_opcodes()
    for at, (step, start, end, other_start, other_end) in enumerate(steps):
        if step == "replace":
            yield mine[start:end], theirs[other_start:other_end], 0 < at < len(steps) - 1


def _words(text: str) -> list[str]:
    return _WORD.findall(_PLACEHOLDER.sub(" ", text))[:MAX_WORDS]


def _are_other_words(mine: list[str], theirs: list[str]) -> bool:
    plain, others = (_DIGITS.sub("", " ".join(words).lower()).strip() for words in (mine, theirs))
    return bool(plain and others) and not plain.startswith(others) and not others.startswith(plain)


def _is_name(word: str) -> bool:
    has_digit = any(sign.isdigit() for sign in word)
    has_shape = "_" in word or word[1:] != word[1:].lower()
    return has_shape or (has_digit and not word.isdigit()) or _STATUS.fullmatch(word) is not None
