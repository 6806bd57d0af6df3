"""Which of many plain words stand in a text, found in one pass over it.

A rule names words without which it cannot hit; asking for each of them by itself would read a text as many
times as there are words.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.extract.patterns import escape, pattern_set


class Words:
    """A set of plain words to look for; case counts."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(dict.fromkeys(words))
        self._set = pattern_set(escape(word) for word in self._words)

    def present(self, text: str) -> frozenset[str]:
        """Those of the words that the text holds."""
        return frozenset(self._words[at] for at in self._set.Match(text) or ())
