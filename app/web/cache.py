"""Answers that cost much and are asked often, kept until anything is written to the archive.

Lists, counts and weeks are the same for everybody as long as the data is. A diagnosis is never kept.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any

from app.store.engine.data_version import Stamp
from app.store.session import Store
from app.web.deps import Knowledge

KEPT_ANSWERS = (
    "overview",
    "home",
    "browse",
    "regressions",
    "regression_versions",
    "known_issues",
    "clusters",
    "view_cluster",
    "digest",
    "digest_archive",
    "newest_week",
    "feed_entries",
)
"""Questions of `Knowledge` whose answers are kept: they depend on their arguments and the archive only."""
AGING = frozenset({"overview"})
"""Those that tell how old the data is, which time alone changes."""
ENTRIES_MAX = 256
"""Some tens of megabytes of the largest answers."""
AGE_MAX_S = 60.0

_Entry = tuple[str, float, Any]


class Memory:
    """The answers of one process over one archive; the one that was not asked for longest goes first."""

    def __init__(self, stamp: Stamp, *, entries_max: int = ENTRIES_MAX, age_max_s: float = AGE_MAX_S) -> None:
        self._stamp = stamp
        self._entries_max = entries_max
        self._age_max_s = age_max_s
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._guard = threading.Lock()

    def remembering(self, knowledge: Knowledge) -> Knowledge:
        """The same questions, those of `KEPT_ANSWERS` answered from here where they can be."""
        return replace(
            knowledge,
            **{name: partial(self._ask, name in AGING, getattr(knowledge, name)) for name in KEPT_ANSWERS},
        )

    def _ask(self, ages: bool, question: Callable[..., Any], store: Store, *told: Any, **named: Any) -> Any:
        key = (question, told, tuple(sorted(named.items())))
        stamp, now = self._stamp.now(), time.monotonic()  # before the answer: what comes meanwhile ends it
        with self._guard:
            found = self._entries.get(key)
            if found is not None and found[0] == stamp and (not ages or now - found[1] < self._age_max_s):
                self._entries.move_to_end(key)
                return found[2]
        answer = question(store, *told, **named)
        with self._guard:
            self._entries[key] = (stamp, now, answer)
            self._entries.move_to_end(key)
            while len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)
        return answer
