"""Open the store and run transactions; the only module that commits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Literal

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from app.errors import StoreError
from app.store.engine.connect import is_sqlite, open_engine, reader_of, upsert, writer_of
from app.store.engine.errors import explain
from app.store.engine.sqlite_file import opened_file, sqlite_file, truncate_wal
from app.store.memo import VERSION, Memo, data_version
from app.store.tables import SECRET

Kind = Literal["content", "votes"]
""""content" is GitHub data and judgements; "votes" are visitors' votes, which few answers depend on."""


@dataclass(frozen=True, slots=True)
class Store:
    """An open database; thread-safe. Close it when done.

    `write_wait_s` is how long a writer waits for another writer; see `writer_of`.
    """

    engine: Engine
    write_wait_s: float | None = None
    _memo: Memo = field(default_factory=Memo, repr=False, compare=False)

    @contextmanager
    def unit_of_work(self, *, changes: Kind | None = "content") -> Iterator[Session]:
        """Open a session that may write. Commit on exit, or roll back on an exception.

        Args:
            changes: the kind of data whose `data_version` changes, invalidating caches; None for neither.
        """
        try:
            with Session(writer_of(self.engine, self.write_wait_s), expire_on_commit=False) as session:
                yield session
                if changes is not None and session.in_transaction():
                    token = {"name": VERSION + changes, "value": token_bytes(8)}
                    upsert(session, SECRET, [token], keys=("name",))
                session.commit()
        except (DBAPIError, PoolTimeoutError) as error:
            raise StoreError(f"the database refused: {explain(error)}") from error

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a read-only session with one consistent snapshot of the data, taken at its first statement."""
        try:
            with Session(reader_of(self.engine), expire_on_commit=False, info={Memo: self._memo}) as session:
                yield session
                if not is_sqlite(self.engine):
                    session.commit()  # a rollback would discard the driver's prepared statements
        except (DBAPIError, PoolTimeoutError) as error:
            raise StoreError(f"the database cannot be read: {explain(error)}") from error

    def data_version(self, *kinds: Kind) -> bytes:
        """Return a token that changes with every commit of data of these kinds; for cache validation."""
        with self.reading() as session:
            return data_version(session, *kinds)

    def erase_deleted(self, *, compact: bool = False) -> None:
        """Remove deleted content from SQLite's files too; on PostgreSQL, vacuuming does so.

        Args:
            compact: also rewrite the file without its free pages; takes as long as a backup.
        """
        file = sqlite_file(str(self.engine.url))
        if file is None:
            return
        if compact:
            with opened_file(file) as connection:
                connection.execute("VACUUM")
        truncate_wal(file)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def open_store(database_url: str) -> Store:
    """Open the database at this URL (see `open_engine`), without checking its schema."""
    return Store(open_engine(database_url))
