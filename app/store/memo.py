"""Keep what is computed from the content of all issues in memory, until content is written."""

import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy.orm import Session

from app.store.engine.connect import sql_rows

Asked = ParamSpec("Asked")
Found = TypeVar("Found")

VERSION = "data of kind "
"""Start of the names under which `secret` holds the version of each kind of data."""


def data_version(session: Session, *kinds: str) -> bytes:
    """Return a token for the data of these kinds as this session sees it. Every write changes it."""
    query = "SELECT name, value FROM secret WHERE name IN :names"
    tokens = dict(sql_rows(session, query, names=[VERSION + kind for kind in kinds]))
    return b" ".join(bytes(tokens.get(VERSION + kind, b"")) for kind in kinds)


class Memo:
    """What this process computed over one store, by function and arguments. Thread-safe.

    One lock for all: who asks for what is being computed waits for it instead of computing it too.
    """

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._found: dict[Hashable, tuple[bytes, Any]] = {}

    def answer(self, version: bytes, key: Hashable, compute: Callable[[], Found]) -> Found:
        """Return what is kept for the key if it is of this version, or else compute and keep it."""
        with self._guard:
            kept = self._found.get(key)
            if kept is None or kept[0] != version:
                kept = self._found[key] = version, compute()
        return cast("Found", kept[1])


def kept_until_written(
    function: Callable[Concatenate[Session, Asked], Found],
) -> Callable[Concatenate[Session, Asked], Found]:
    """Keep what a function returns until content is written; nobody may change it.

    Only sessions of `Store.reading` keep it: another one may see what it has not committed. The arguments are
    hashable and of few values, such as a repository and a field, as nothing is dropped while content stays.
    """

    @wraps(function)
    def answer(session: Session, /, *args: Asked.args, **options: Asked.kwargs) -> Found:
        memo: Memo | None = session.info.get(Memo)
        if memo is None:
            return function(session, *args, **options)
        if "version" not in session.info:
            session.info["version"] = data_version(session, "content")
        key = function, args, tuple(sorted(options.items()))
        return memo.answer(session.info["version"], key, lambda: function(session, *args, **options))

    return answer
