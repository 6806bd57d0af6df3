"""Opening the archive, and the one place that commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from app.errors import StoreError
from app.store.dialect import open_engine


@dataclass(frozen=True, slots=True)
class Store:
    """An open archive; safe to share between threads. Close it when done."""

    engine: Engine

    @contextmanager
    def unit_of_work(self) -> Iterator[Session]:
        """A session that may write; all of it is committed at the end, or none of it.

        Raises:
            StoreError: the database refused (locked for too long, disk full, gone).
        """
        engine = self.engine.execution_options(writes=True)
        try:
            with Session(engine, expire_on_commit=False) as session:
                yield session
                session.commit()
        except (OperationalError, DBAPIError) as error:
            raise StoreError(f"the database refused: {_reason(error)}") from error

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that only reads, with one view of the data from its first statement on.

        Raises:
            StoreError: the database cannot be read.
        """
        try:
            with Session(self.engine) as session:
                yield session
        except (OperationalError, DBAPIError) as error:
            raise StoreError(f"the database cannot be read: {_reason(error)}") from error

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def _reason(error: DBAPIError) -> str:
    """The engine's own first line, without the statement and its values."""
    return str(error.orig).strip().splitlines()[0][:200] if str(error.orig).strip() else "unknown"


def open_store(database_url: str) -> Store:
    """Open the archive at a database address; its schema is not looked at.

    Raises:
        StoreError: see `open_engine`.
    """
    return Store(open_engine(database_url))
