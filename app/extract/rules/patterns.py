"""A compiled pattern, asked with as little as possible around RE2's own search.

In: what `re2.compile` gives. Out: the methods of `re.Pattern` and `re.Match` that readers use. In text of
ASCII signs alone, as nearly every log line is, places among the bytes are places among the signs, so RE2's
binding is asked as it is. The package's own layer, which counts signs at every hit and takes several times
as long as the search of a line, answers for any other text.

Linear-time patterns for foreign text.

`pattern(...)` compiles with RE2, so hostile text costs time linear in its length: no look-around,
no back-references. Every pattern that meets an issue's or a log's text is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import re2

Span = tuple[int, int]


class Match:
    """Where a pattern was found in a text; (-1, -1) is the span of a group that took no part."""

    __slots__ = ("_spans", "re", "string")

    def __init__(self, pattern: Pattern, text: Any, spans: Sequence[Span]) -> None:
        self.re = pattern
        self.string = text
        self._spans = spans

    def group(self, group: int | str = 0) -> Any:
        """A group's words, by its number or name; None if it took no part."""
        start, end = self._spans[self.re.groupindex[group] if isinstance(group, str) else group]
        return self.string[start:end] if start >= 0 else None

    __getitem__ = group

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        """All groups' words, in order."""
        text = self.string
        return tuple([text[start:end] if start >= 0 else default for start, end in self._spans[1:]])

    def groupdict(self, default: Any = None) -> dict[str, Any]:
        """The named groups' words."""
        words = self.groups(default)
        return {name: words[at - 1] for name, at in self.re.groupindex.items()}

    def span(self, group: int | str = 0) -> Span:
        """Where a group begins and ends."""
        return self._spans[self.re.groupindex[group] if isinstance(group, str) else group]

    def start(self, group: int | str = 0) -> int:
        """Where a group begins."""
        return self.span(group)[0]

    def end(self, group: int | str = 0) -> int:
        """Where a group ends."""
        return self.span(group)[1]

    @property
    def lastindex(self) -> int | None:
        """The number of the group that ends last, of nested ones the outermost; None if none took part."""
        ends = [end for _, end in self._spans[1:]]
        last = max(ends, default=-1)
        return ends.index(last) + 1 if last >= 0 else None


def quick(compiled: Any) -> Any:
    """A `Pattern` of it; what the package gave itself where a release of it has no such binding."""
    return Pattern(compiled) if hasattr(compiled, "_regexp") else compiled


class Pattern:
    """A pattern with the methods of `re.Pattern`; `within` are `pos` and `endpos`. A text may be of bytes."""

    __slots__ = ("_anywhere", "_at_start", "_compiled", "_find", "_whole", "groupindex", "groups")

    def __init__(self, compiled: Any) -> None:
        binding = compiled._regexp  # noqa: SLF001  the package has no other door to it
        anchor = binding.Anchor
        self._compiled = compiled
        self._find = binding.Match
        self._anywhere, self._at_start = anchor.UNANCHORED, anchor.ANCHOR_START
        self._whole = anchor.ANCHOR_BOTH
        self.groups: int = compiled.groups
        self.groupindex: dict[str, int] = compiled.groupindex

    @property
    def pattern(self) -> str:
        """The pattern as it was written."""
        return str(self._compiled.pattern)

    def search(self, text: Any, *within: int) -> Any:
        """The first match anywhere, or None."""
        if within or not text.isascii():
            return self._compiled.search(text, *within)
        return self._first(self._anywhere, text)

    def match(self, text: Any, *within: int) -> Any:
        """The match at the text's beginning, or None."""
        if within or not text.isascii():
            return self._compiled.match(text, *within)
        return self._first(self._at_start, text)

    def fullmatch(self, text: Any) -> Any:
        """The match of the whole text, or None."""
        return self._first(self._whole, text) if text.isascii() else self._compiled.fullmatch(text)

    def finditer(self, text: Any, *within: int) -> Iterator[Any]:
        """All matches in order; they do not overlap."""
        if within or not text.isascii():
            return iter(self._compiled.finditer(text, *within))
        return self._each(text)

    def findall(self, text: str) -> list[Any]:
        """The words of all matches, or those of the groups if the pattern has any."""
        if self.groups > 1:
            return [found.groups("") for found in self.finditer(text)]
        return [found.group(self.groups) or "" for found in self.finditer(text)]

    def sub(self, words: str | Callable[[Any], str], text: str, count: int = 0) -> str:
        r"""The text with its matches, or the first `count`, replaced; in a string `\1` stands for a group."""
        if isinstance(words, str) and "\\" in words:
            return str(self._compiled.sub(words, text, count))
        parts: list[str] = []
        done = 0
        for number, found in enumerate(self.finditer(text), 1):
            start, end = found.span()
            parts += (text[done:start], words if isinstance(words, str) else words(found))
            done = end
            if number == count:
                break
        return "".join((*parts, text[done:])) if parts else text

    def split(self, text: str) -> list[str]:
        """What stands between the matches."""
        return list(self._compiled.split(text))

    def _first(self, anchor: Any, text: Any) -> Match | None:
        spans = self._find(anchor, text if isinstance(text, bytes) else text.encode(), 0, len(text))
        return Match(self, text, spans) if spans[0][0] >= 0 else None

    def _each(self, text: Any) -> Iterator[Match]:
        data = text if isinstance(text, bytes) else text.encode()
        at, last = 0, len(data)
        while at <= last:
            spans = self._find(self._anywhere, data, at, last)
            start, end = spans[0]
            if start < 0:
                return
            yield Match(self, text, spans)
            at = end if end > at else at + 1


MAX_MEMORY_BYTES = 64 << 20
"""Room for one pattern's automaton; RE2's default of 8 MiB is tight for our longest lists."""


@lru_cache(maxsize=1024)
def pattern(text: str, *, ignore_case: bool = False, multiline: bool = False) -> Any:
    """A compiled RE2 pattern with the methods of `re.Pattern` (search, finditer, sub, …).

    Raises:
        re2.error: the pattern is not RE2 syntax; a fault of the rule, found by the rules' test.
    """
    options = _options()
    options.case_sensitive = not ignore_case
    flags = "(?m)" if multiline else ""
    return quick(re2.compile(flags + text, options=options))


def pattern_set(texts: Iterable[str]) -> Any:
    """Many patterns as one automaton: `Match(text)` gives the positions of those found, in one pass.

    Raises:
        re2.error: a pattern is not RE2 syntax.
    """
    found = re2.Set.SearchSet(_options())
    for text in texts:
        found.Add(text)
    found.Compile()
    return found


def escape(text: str) -> str:
    """A pattern that finds exactly this text."""
    return str(re2.escape(text))


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    return options
