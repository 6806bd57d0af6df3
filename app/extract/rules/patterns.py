"""Linear-time patterns for foreign text.

`pattern(...)` compiles with RE2, so hostile text costs time linear in its length: no look-around,
no back-references. Every pattern that meets an issue's or a log's text is made here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

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
    return re2.compile(flags + text, options=options)


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
