"""Answers that cost much and are asked often, kept until anything is written to the store.

Lists, counts and weeks are the same for everybody as long as the data is. A diagnosis is never kept.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

Answer = TypeVar("Answer")

ENTRIES_MAX = 256
"""Some tens of megabytes of the largest answers."""


class AnswerCache:
    """The answers of one process over one store; the one that was not asked for longest goes first.

    Args:
        data_version: gives a token that changes with every commit, see `app.store.engine.data_version`.
        entries_max: how many answers are kept.
    """

    def __init__(self, data_version: Callable[[], str], *, entries_max: int = ENTRIES_MAX) -> None:
        self._data_version = data_version
        self._entries_max = entries_max
        self._entries: OrderedDict[Hashable, tuple[str, float, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, question: partial[Answer], *, max_age_s: float = math.inf) -> Answer:
        """What the question answers; its function and arguments, which must be hashable, are the key."""
        key = (question.func, question.args, tuple(sorted(question.keywords.items())))
        version, now = self._data_version(), time.monotonic()  # read before the answer is made
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] == version and now - entry[1] < max_age_s:
                self._entries.move_to_end(key)
                found: Answer = entry[2]
                return found
        found = question()
        with self._lock:
            self._entries[key] = (version, now, found)
            self._entries.move_to_end(key)
            while len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)
        return found
