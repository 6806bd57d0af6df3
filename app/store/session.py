"""Opening the archive, and the one place that commits."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any, Literal, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from app.errors import StoreError
from app.store.engine.connect import is_sqlite, open_engine, reader_of, sql_rows, upsert, writer_of
from app.store.engine.errors import explain
from app.store.engine.sqlite_file import empty_log, opened_file, sqlite_file
from app.store.tables import SECRET

Answer = TypeVar("Answer")
Kind = Literal["content", "votes"]
"""What comes from GitHub, judgements included; and what visitors vote, which few answers depend on."""
_REMEMBERED = "remembered"
_STATE = "data of kind "


def _state(session: Session, *kinds: Kind) -> bytes:
    """A token of the data of these kinds as this session sees it: another one after each write."""
    query = "SELECT name, value FROM secret WHERE name IN :names"
    tokens = dict(sql_rows(session, query, names=[_STATE + kind for kind in kinds]))
    return b" ".join(bytes(tokens.get(_STATE + kind, b"")) for kind in kinds)


class _Remembered:
    """Answers that hold for one state of the content; those of another state take their place."""

    def __init__(self) -> None:
        self._kept: tuple[bytes, dict[Hashable, Any]] = b"", {}

    def answers(self, session: Session) -> dict[Hashable, Any]:
        """The answers that hold for what this session sees; what is put in stays for later sessions."""
        state = _state(session, "content")
        kept = self._kept
        if kept[0] != state:
            kept = self._kept = state, {}
        return kept[1]


@dataclass(frozen=True, slots=True)
class Store:
    """An open archive; safe to share between threads. Close it when done.

    `write_wait_s` is how long a writer waits for another one; see `writer_of`.
    """

    engine: Engine
    write_wait_s: float | None = None
    _remembered: _Remembered = field(default_factory=_Remembered, repr=False, compare=False)

    @contextmanager
    def unit_of_work(self, *, changes: Kind | None = "content") -> Iterator[Session]:
        """A session that may write; all of it is committed at the end, or none of it.

        Args:
            changes: what answers that are kept must be asked for anew; see `data_version`.

        Raises:
            StoreError: the database refused (locked for too long, disk full, gone).
        """
        try:
            with Session(writer_of(self.engine, self.write_wait_s), expire_on_commit=False) as session:
                yield session
                if changes is not None and session.in_transaction():
                    token = {"name": _STATE + changes, "value": token_bytes(8)}
                    upsert(session, SECRET, [token], keys=("name",))
                session.commit()
        except (DBAPIError, PoolTimeoutError) as error:
            raise StoreError(f"the database refused: {explain(error)}") from error

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that only reads, with one view of the data from its first statement on.

        Raises:
            StoreError: the database cannot be read.
        """
        info: dict[str, Any] = {_REMEMBERED: self._remembered}
        try:
            with Session(reader_of(self.engine), expire_on_commit=False, info=info) as session:
                yield session
                if not is_sqlite(self.engine):
                    session.commit()  # a rollback would make the driver forget the statements it prepared
        except (DBAPIError, PoolTimeoutError) as error:
            raise StoreError(f"the database cannot be read: {explain(error)}") from error

    def data_version(self, *kinds: Kind) -> bytes:
        """A token that changes with every commit of data of these kinds, for who keeps answers that long.

        Raises:
            StoreError: the database cannot be read.
        """
        with self.reading() as session:
            return _state(session, *kinds)

    def leave_no_trace(self, *, compact: bool = False) -> None:
        """Have what was deleted gone from SQLite's files too; PostgreSQL does so as it vacuums.

        Args:
            compact: write the file anew, for what was deleted without `erasing`; takes as long as a backup.
        """
        file = sqlite_file(str(self.engine.url))
        if file is None:
            return
        if compact:
            with opened_file(file) as connection:
                connection.execute("VACUUM")
        empty_log(file)

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def open_store(database_url: str) -> Store:
    """Open the archive at a database address; its schema is not looked at.

    Raises:
        StoreError: see `open_engine`.
    """
    return Store(open_engine(database_url))


def remembered(session: Session, name: Hashable, ask: Callable[[], Answer]) -> Answer:
    """What `ask` answers; of sessions that only read one asks, until content is written.

    A session that writes is asked every time.

    Args:
        name: what is asked; one name, one question. Few names: answers are dropped together.
    """
    kept: _Remembered | dict[Hashable, Answer] | None = session.info.get(_REMEMBERED)
    if kept is None:
        return ask()
    if isinstance(kept, _Remembered):
        kept = session.info[_REMEMBERED] = kept.answers(session)
    if name not in kept:
        kept[name] = ask()
    return kept[name]
