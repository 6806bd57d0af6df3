"""Copy a whole database into another one, on the same or the other engine.

The source is read in one snapshot while others may write to it. The target is written in one transaction,
committed only after the row count of every table has been verified: an interrupted copy leaves the target
unchanged.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, DateTime, MetaData, Table, Text, cast, event, func, select
from sqlalchemy.exc import DBAPIError

from app.errors import SchemaError, StoreError
from app.store.engine.connect import collect_statistics, empty_tables, insert_rows, restart_sequences
from app.store.engine.errors import explain
from app.store.engine.sync_lock import sync_lock
from app.store.records import Progress, Report, quiet
from app.store.schema import check_current, current_revision, migrate
from app.store.session import Store
from app.store.tables import UtcDateTime

NOT_COPIED = frozenset({"alembic_version", "backup_manifest"})
ROWS_PER_BATCH = 1000
"""About 20 MiB of issues with their raw JSON."""


def copy_database(
    source: Store, target: Store, report: Report = quiet, *, replacing: bool = False
) -> dict[str, int]:
    """Copy all rows into an empty database, creating its schema if it has none.

    Args:
        source: read in one snapshot; it may be in use.
        target: syncs on it are locked out until the copy is done.

    Returns:
        The row count of each table, the same in both databases.

    Raises:
        SchemaError: either database does not have this program's schema.
        StoreError: the target is not empty or a sync is running on it, or either database fails.
    """
    _check_schema(source, "the source")
    if current_revision(target) is None:
        migrate(target)
    _check_schema(target, "the target")
    with sync_lock(target.engine) as held:
        if not held:
            raise StoreError("a sync is writing to the target: wait for its end, or stop it")
        return copy_rows(source, target, report, replacing=replacing)


def _check_schema(store: Store, name: str) -> None:
    try:
        check_current(store)
    except SchemaError as error:
        raise SchemaError(f"{name}: {error.message}") from None


def copy_rows(
    source: Store, target: Store, report: Report = quiet, *, replacing: bool = False
) -> dict[str, int]:
    """Like `copy_database`, without schema checks or lock: both must have the same schema."""
    with source.reading() as reading, target.unit_of_work(changes=None) as writing:
        old, new = reading.connection(), writing.connection()
        tables = tables_in(old)
        names = [table.name for table in tables]
        if replacing:
            empty_tables(new, names[::-1])
        elif filled := find_filled(new):
            raise StoreError(f"the target is not empty: its table {filled} has rows; name an empty database")
        wanted, done = count_rows(old, tables), 0
        for table in tables:
            for rows in _read_rows(old, table):
                insert_rows(new, table.name, table.columns.keys(), rows)
                done += len(rows)
                report(Progress("copying", done, sum(wanted.values())))
        restart_sequences(new, names)
        collect_statistics(new, names)
        for name, rows_found in count_rows(new, tables).items():
            if rows_found != wanted[name]:
                raise StoreError(f"{rows_found} of {wanted[name]} rows of the table {name} were copied")
    return wanted


def tables_in(connection: Connection) -> list[Table]:
    """Return the tables of a database of any schema version, each after the tables it references."""
    found = MetaData()

    @event.listens_for(found, "column_reflect")
    def _in_utc(_inspector: Any, _table: Table, column: Any) -> None:
        if isinstance(column["type"], DateTime):
            column["type"] = UtcDateTime()

    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name not in NOT_COPIED]


def count_rows(connection: Connection, tables: Iterable[Table]) -> dict[str, int]:
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in tables
    }


def find_filled(connection: Connection) -> str | None:
    """The name of a table that has rows, or None."""
    filled = (t.name for t in tables_in(connection) if connection.execute(select(1).select_from(t)).first())
    return next(filled, None)


def _read_rows(connection: Connection, table: Table) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield all rows of a table in batches, with JSON as text."""
    columns = (cast(item, Text) if isinstance(item.type, JSON) else item for item in table.columns)
    try:
        with connection.execution_options(yield_per=ROWS_PER_BATCH).execute(select(*columns)) as found:
            yield from found.partitions(ROWS_PER_BATCH)
    except DBAPIError as error:
        raise StoreError(f"the source cannot be read: {explain(error)}") from error
