"""Moves a whole base to another one, of the same engine or the other.

The source is read as one snapshot, beside everybody who writes to it. The target is written in one
transaction, which ends only after every table's row count and checksum were read back and compared: whatever
stops the copy on the way, the target stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from app.errors import SchemaError, StoreError
from app.store.backup.checksums import (
    Row,
    Shape,
    Summed,
    Summing,
    count_rows,
    read_rows,
    shapes_in,
    sum_table,
)
from app.store.engine.bulk import empty_tables, gather_statistics, go_on_counting, insert_rows
from app.store.engine.errors import explain
from app.store.engine.sync_lock import sync_lock
from app.store.schema import check_current, current_revision, migrate
from app.store.session import Store

NO_ROWS_OF_OURS = ("alembic_version", "backup_manifest")


@dataclass(frozen=True, slots=True)
class CopyStep:
    """How far a copy is, in rows; `stage` is "copying" or "checking"."""

    stage: str
    done: int
    total: int | None
    note: str = ""


Report = Callable[[CopyStep], None]


def no_report(_step: CopyStep) -> None:
    """For who does not want to know."""


def copy_base(
    source: Store, target: Store, report: Report = no_report, *, replacing: bool = False
) -> dict[str, Summed]:
    """Copy all rows into an empty base, whose schema is made if it has none.

    Args:
        source: read as it is now; its writers go on.
        target: no sync runs on it until the copy is done.
        report: told how far it is.
        replacing: in place of all rows that the target has.

    Returns:
        Row count and checksum of each table, which both bases have.

    Raises:
        SchemaError: one of the two is not of this program's schema.
        StoreError: the target is not empty or is being written, or one of the two cannot be used.
    """
    _check_schema(source, "the source")
    if current_revision(target) is None:
        migrate(target)
    _check_schema(target, "the target")
    with sync_lock(target) as held:
        if not held:
            raise StoreError("a sync is writing to the target: wait for its end, or stop it")
        return copy_rows(source, target, report, replacing=replacing)


def _check_schema(store: Store, name: str) -> None:
    try:
        check_current(store)
    except SchemaError as error:
        raise SchemaError(f"{name}: {error.message}") from None


def copy_rows(
    source: Store, target: Store, report: Report = no_report, *, replacing: bool = False
) -> dict[str, Summed]:
    """As `copy_base`, for two bases of one schema, whichever it is, that nobody else writes to."""
    with source.reading() as reading, target.unit_of_work() as writing:
        old, new = reading.connection(), writing.connection()
        shapes = shapes_in(old, leaving_out=NO_ROWS_OF_OURS)
        names = [shape.name for shape in shapes]
        if replacing:
            empty_tables(new, names[::-1])
        elif filled := find_filled(new):
            raise StoreError(f"the target is not empty: its table {filled} has rows; name an empty base")
        wanted = dict(_move(old, new, shapes, report))
        go_on_counting(new, names)
        check_sums(new, shapes, wanted, report)
    gather_statistics(target.engine, names)
    return wanted


def find_filled(connection: Connection) -> str | None:
    """A table that has rows, if one has."""
    shapes = shapes_in(connection, leaving_out=NO_ROWS_OF_OURS)
    return next((shape.name for shape in shapes if _has_rows(connection, shape)), None)


def _has_rows(connection: Connection, shape: Shape) -> bool:
    return connection.execute(select(1).select_from(shape.table).limit(1)).first() is not None


def _move(
    old: Connection, new: Connection, shapes: Sequence[Shape], report: Report
) -> Iterator[tuple[str, Summed]]:
    total, done = sum(count_rows(old, shape) for shape in shapes), 0
    for shape in shapes:
        summing = Summing(shape)
        with closing(_told_as_the_source(read_rows(old, shape))) as batches:
            for rows in batches:
                insert_rows(new, shape.name, list(shape.columns), rows)
                summing.add(rows)
                done += len(rows)
                report(CopyStep("copying", done, total))
        yield shape.name, summing.summed


def _told_as_the_source(batches: Iterator[list[Row]]) -> Generator[list[Row]]:
    try:
        yield from batches
    except DBAPIError as error:
        raise StoreError(f"the source cannot be read: {explain(error)}") from error


def sum_tables(
    connection: Connection, shapes: Sequence[Shape], report: Report = no_report
) -> dict[str, Summed]:
    """Row count and checksum of each table, as this connection's transaction sees it."""
    total, found = sum(count_rows(connection, shape) for shape in shapes), {}
    for shape in shapes:
        found[shape.name] = sum_table(connection, shape)
        report(CopyStep("checking", sum(summed.rows for summed in found.values()), total))
    return found


def check_sums(
    connection: Connection, shapes: Sequence[Shape], wanted: Mapping[str, Summed], report: Report = no_report
) -> None:
    """Read every table again and compare.

    Raises:
        StoreError: a table has other rows than wanted.
    """
    for name, found in sum_tables(connection, shapes, report).items():
        if found != wanted[name]:
            raise StoreError(
                f"the table {name} has {found.rows} rows with checksum {found.checksum}, where "
                f"{wanted[name].rows} rows with {wanted[name].checksum} are wanted"
            )
