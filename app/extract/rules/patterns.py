"""Linear-time patterns for foreign text.

`pattern(...)` compiles with RE2, so hostile text costs time linear in its length: no look-around,
no back-references. Every pattern that meets an issue's or a log's text is made here.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import re2

MAX_MEMORY_BYTES = 8 << 20
"""Room for one pattern's automaton, and for a set's. Where it ends RE2 forgets the states met so far and goes
on. With eight times as much, texts are read no faster, and a process grows by 100 MB over its first 3,000."""


class _OnFirstUse:
    """What `make` makes, once an attribute of it is asked for: few of the patterns meet any one text.

    An attribute that was asked for is kept, and costs no more than the object's own; those that are `known`
    are there before.
    """

    def __init__(self, make: Callable[[], Any], **known: str) -> None:
        self._make = cache(make)
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._make(), name)
        setattr(self, name, value)
        return value


@lru_cache(maxsize=1024)
def pattern(text: str, *, ignore_case: bool = False, multiline: bool = False) -> Any:
    """An RE2 pattern with the methods of `re.Pattern` (search, finditer, sub, …), compiled on first use.

    That use raises `re2.error` where the pattern is not RE2 syntax; a fault of the rule, found by the rules'
    test.
    """
    source = f"(?m){text}" if multiline else text

    def compiled() -> Any:
        options = _options()
        options.case_sensitive = not ignore_case
        return re2.compile(source, options)

    return _OnFirstUse(compiled, pattern=source)


def pattern_set(texts: Sequence[str]) -> Any:
    """Many patterns as one automaton: `Match(text)` gives the positions of those found, in one pass.

    Its first use raises `re2.error` where a pattern is not RE2 syntax.
    """

    def compiled() -> Any:
        found = re2.Set.SearchSet(_options())
        for text in texts:
            found.Add(text)
        found.Compile()
        return found

    return _OnFirstUse(compiled)


def escape(text: str) -> str:
    """A pattern that finds exactly this text."""
    return str(re2.escape(text))


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    return options
