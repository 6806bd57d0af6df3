"""Row counts and checksums of whole tables that come out alike on both engines.

A checksum is the sum, modulo 2**128, of a hash of each row, so it tells nothing of the rows' order, which the
engines do not share. JSON is compared by its meaning: keys sorted, 1.0 the same as 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal, cast

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    func,
    inspect,
    select,
)
from sqlalchemy import cast as cast_column
from sqlalchemy.types import TypeEngine

from app.store.tables import UtcDateTime

Kind = Literal["integer", "real", "boolean", "text", "time", "json", "binary"]
Row = Sequence[Any]

ROWS_PER_BATCH = 1000
"""Some 20 MiB of issues with their raw JSON."""
_MODULUS = 1 << 128
_TYPES: Mapping[Kind, type[TypeEngine[Any]]] = {
    "integer": BigInteger,
    "real": Float,
    "boolean": Boolean,
    "text": Text,
    "time": UtcDateTime,
    "json": Text,
    "binary": LargeBinary,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's name and its columns with their kinds: all that its rows are read by."""

    name: str
    columns: Mapping[str, Kind]

    @property
    def table(self) -> Table:
        """The table without keys and defaults; JSON is text."""
        return Table(
            self.name, MetaData(), *(Column(name, _TYPES[kind]) for name, kind in self.columns.items())
        )


@dataclass(frozen=True, slots=True)
class Summed:
    """How many rows a table has, and their checksum in hexadecimal digits."""

    rows: int
    checksum: str


def shapes_in(connection: Connection, *, leaving_out: Collection[str] = ()) -> list[Shape]:
    """The tables that a database has, each after those that it points at; columns by name.

    The database itself is asked, so this is right for a base of any schema version.
    """
    looked = inspect(connection)
    names = [name for name, _ in looked.get_sorted_table_and_fkc_names() if name and name not in leaving_out]
    return [
        Shape(
            name,
            {
                column["name"]: _kind_of(column["type"])
                for column in sorted(looked.get_columns(name), key=lambda column: str(column["name"]))
            },
        )
        for name in names
    ]


def _kind_of(sql_type: TypeEngine[Any]) -> Kind:
    kinds: tuple[tuple[type[TypeEngine[Any]], Kind], ...] = (
        (JSON, "json"),
        (DateTime, "time"),
        (Boolean, "boolean"),
        (Float, "real"),
        (Integer, "integer"),
        (LargeBinary, "binary"),
    )
    return next((kind for base, kind in kinds if isinstance(sql_type, base)), "text")


def count_rows(connection: Connection, shape: Shape) -> int:
    """How many rows a table has."""
    return connection.execute(select(func.count()).select_from(shape.table)).scalar_one()


def read_rows(connection: Connection, shape: Shape) -> Iterator[list[Row]]:
    """All rows of a table, in batches; JSON as text in one form, times in UTC."""
    table = shape.table
    asked = select(
        *(
            cast_column(table.c[name], Text) if kind == "json" else table.c[name]
            for name, kind in shape.columns.items()
        )
    )
    places = [at for at, kind in enumerate(shape.columns.values()) if kind == "json"]
    with connection.execution_options(yield_per=ROWS_PER_BATCH).execute(asked) as found:
        for batch in found.partitions(ROWS_PER_BATCH):
            yield [_with_plain_json(row, places) for row in batch] if places else cast("list[Row]", batch)


def _with_plain_json(row: Row, places: Iterable[int]) -> Row:
    values = list(row)
    for at in places:
        if values[at] is not None:
            values[at] = plain_json(values[at])
    return values


def plain_json(text: str) -> str:
    """JSON text in the one form that both engines' agree on."""
    return json.dumps(
        json.loads(text, parse_float=_number), sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return bytes(value).hex()


_ENCODE = json.JSONEncoder(default=_plain).encode


class Summing:
    """Adds up the rows of one table."""

    def __init__(self, shape: Shape) -> None:
        self._rows = self._sum = 0
        only_integers = set(shape.columns.values()) == {"integer"}
        self._encode: Callable[[Row], str] = repr if only_integers else _ENCODE  # the index has millions

    def add(self, rows: Iterable[Row]) -> None:
        """Take rows in, in any order."""
        for row in rows:
            told = self._encode(tuple(row)).encode()
            self._sum += int.from_bytes(blake2b(told, digest_size=16).digest(), "big")
            self._rows += 1

    @property
    def summed(self) -> Summed:
        """What was taken in so far."""
        return Summed(self._rows, f"{self._sum % _MODULUS:032x}")


def sum_table(connection: Connection, shape: Shape) -> Summed:
    """Row count and checksum of a table as this connection's transaction sees it."""
    summing = Summing(shape)
    for rows in read_rows(connection, shape):
        summing.add(rows)
    return summing.summed
