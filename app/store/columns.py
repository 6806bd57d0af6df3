"""The columns that all tables are made of: times in UTC, JSON on both engines, the key of an issue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Column, DateTime, ForeignKeyConstraint, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
JsonType = JSON().with_variant(JSONB(), "postgresql")


class UtcDateTime(TypeDecorator[datetime]):
    """Times are aware and in UTC on both engines; SQLite keeps no zone of its own."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Any) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def json_column(*, nullable: bool = True) -> Any:
    """A column of JSON, binary on PostgreSQL."""
    return Column(JsonType, nullable=nullable)


def time_column(*, nullable: bool = True, index: bool = False) -> Any:
    """A column of aware times in UTC."""
    return Column(UtcDateTime(), nullable=nullable, index=index)


def text_column(*, nullable: bool = False) -> Any:
    """A column of text without a limit."""
    return Column(Text(), nullable=nullable)


def issue_key() -> ForeignKeyConstraint:
    """The columns `repo_id` and `number` point at an issue, and go when it goes."""
    return ForeignKeyConstraint(
        ["repo_id", "number"], ["issue.repo_id", "issue.number"], ondelete="CASCADE"
    )
