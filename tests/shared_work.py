"""Work that tests repeat, done once in a process: statements compiled for a base, readings of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

from app.knowledge.indexing.derive import Source, StoredReading, read_sources
from app.store import session

_compiled: dict[type, LRUCache[Any, Any]] = {}
_readings: dict[str, StoredReading] = {}


def share_compiled_statements(patch: pytest.MonkeyPatch) -> None:
    """Let all engines of a kind use one cache of compiled statements, as a server's single engine does.

    SQLAlchemy's cache belongs to one engine and is keyed by its dialect; nearly every test opens an engine of
    its own, and would spend more on compiling its statements than on running them.
    """
    open_engine = session.open_engine

    def opened(database_url: str) -> Engine:
        engine = open_engine(database_url)
        kind = type(engine.dialect)
        if kind not in _compiled:
            _compiled[kind] = LRUCache(5000)
            patch.setattr(kind, "__eq__", lambda one, other: type(one) is type(other))
            patch.setattr(kind, "__hash__", lambda one: hash(type(one)))
        engine._compiled_cache = _compiled[kind]
        return engine

    patch.setattr(session, "open_engine", opened)


def read_once(sources: Sequence[Source]) -> list[StoredReading]:
    """As `read_sources`, but a text that another test had read is not read again; for unchanged rules."""
    for source in sources:
        if repr(source) not in _readings:
            (_readings[repr(source)],) = read_sources([source])
    return [_readings[repr(source)] for source in sources]
