"""Linear-time patterns for untrusted text.

`pattern(...)` compiles with RE2, so that hostile text costs time linear in its length: no look-around, no
back-references. All patterns for issue and log text are compiled here.
"""

from collections.abc import Callable, Iterable
from functools import cache, cached_property, lru_cache
from typing import Any

import re2

MAX_MEMORY_BYTES = 8 << 20
"""Memory limit for the automaton of one pattern; beyond it RE2 drops its cached states. With eight
times as much, reading is no faster, and a process grows by 100 MB over its first 3,000 texts."""


class _OnFirstUse:
    """Proxy for the object that `make` creates on first attribute access: a text needs few of the patterns.

    Attributes are cached after the first access; those in `known` are available before `make` is called.
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
    """Return an RE2 pattern with the methods of `re.Pattern` (search, finditer, …), compiled on first use.

    The first use raises `re2.error` if the pattern is not valid RE2 syntax, which the rules' test detects.
    """
    source = f"(?m){text}" if multiline else text

    def compiled() -> Any:
        options = _options()
        options.case_sensitive = not ignore_case
        return re2.compile(source, options)

    return _OnFirstUse(compiled, pattern=source)


class PatternSet:
    r"""Patterns that are searched together.

    RE2 first looks for the literals that the patterns need, all in one pass, and then searches only the
    patterns whose literals it found. One automaton of all patterns would have too many states: repetitions
    such as `[^\n]{0,60}` multiply those of the others.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def matching(self, text: str) -> list[int]:
        """Return the indices of the patterns that match anywhere in the text, in order.

        Raises:
            re2.error: a pattern is not valid RE2 syntax; raised by the first call.
        """
        return sorted(self._filter.Match(text) or ()) if self._texts else []

    @cached_property
    def _filter(self) -> Any:
        combined = re2.Filter()
        for text in self._texts:
            combined.Add(text, _options())
        combined.Compile()
        return combined


def escape(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    return str(re2.escape(text))


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    return options
