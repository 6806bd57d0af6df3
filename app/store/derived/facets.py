"""Which issues a list shows: numbers found by their facts, from indexes that hold no texts.

`posting` and `profile` find issues by words; this finds them by facts. Every question is about the issues of
one repository that GitHub still has; pull requests are none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import select
from sqlmodel import Session

from app.store.engine.rows import sql_rows
from app.store.tables import metadata

Listed = tuple[int, str]
"""An issue's number and its state."""
FieldValue = tuple[str, str, int]
"""A value that stands in an issue's facts: field, value in lower case, number."""
ReadingColumn = Literal["failure_kind", "error_type", "has_remedy"]
ColumnValue = tuple[str, int]
"""A column's value of an issue as a whole, and its number."""

_ISSUE = metadata.tables["issue"].c
_LISTED = "repo_id = :repo_id AND NOT is_pull_request AND gone_at IS NULL"


def listed_states(session: Session, repo_id: int, *, since: datetime | None = None) -> list[Listed]:
    """All issues with their states, or those opened at or after a time."""
    if since is None:
        return sql_rows(session, f"SELECT number, state FROM issue WHERE {_LISTED}", repo_id=repo_id)  # noqa: S608
    query = select(_ISSUE.number, _ISSUE.state).where(
        _ISSUE.repo_id == repo_id,
        _ISSUE.is_pull_request.is_(False),
        _ISSUE.gone_at.is_(None),
        _ISSUE.created_at >= since,
    )
    return [(number, state) for number, state in session.connection().execute(query)]


def numbers_labelled(session: Session, repo_id: int, label: str) -> set[int]:
    """The issues that carry a label, whatever its case."""
    query = f"SELECT number, CAST(labels AS text) FROM issue WHERE {_LISTED}"  # noqa: S608
    wanted = label.casefold()
    rows = sql_rows(session, query, repo_id=repo_id)
    return {number for number, labels in rows if wanted in map(str.casefold, json.loads(labels))}


def field_values_of(session: Session, repo_id: int, fields: Sequence[str]) -> list[FieldValue]:
    """What stands in the facts of all issues under these fields."""
    query = "SELECT field, value_key, number FROM fact WHERE field IN :fields AND repo_id = :repo_id"
    return sql_rows(session, query, repo_id=repo_id, fields=list(fields))


def column_values_of(session: Session, repo_id: int, name: ReadingColumn) -> list[ColumnValue]:
    """A column of the issues that were read; those without a value are left out."""
    known = "has_remedy" if name == "has_remedy" else f"{name} IS NOT NULL"
    query = f"SELECT {name}, number FROM reading WHERE repo_id = :repo_id AND {known}"  # noqa: S608
    return sql_rows(session, query, repo_id=repo_id)


def find_estimated_dates(session: Session, repo_id: int, numbers: Sequence[int]) -> set[int]:
    """Which of these issues came from a file whose dates are estimates, as the file itself says."""
    query = select(_ISSUE.number).where(
        _ISSUE.repo_id == repo_id,
        _ISSUE.number.in_(list(numbers)),
        _ISSUE.raw["x_dates_estimated"].as_boolean().is_(True),
    )
    return set(session.connection().execute(query).scalars())


def find_titles(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    """The titles of these issues."""
    query = "SELECT number, title FROM issue WHERE repo_id = :repo_id AND number IN :numbers"
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(numbers)))
