"""Which issues a list shows: numbers found by what is told of them, from indexes that hold no texts.

`posting` and `profile` find issues by words; this finds them by facts. Every question is about the issues of
one repository that GitHub still has; pull requests are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select
from sqlalchemy import select as sql_select
from sqlmodel import Session

from app.store.tables import metadata

_FACT, _READING, _ISSUE = (metadata.tables[name].c for name in ("fact", "reading", "issue"))


Listed = tuple[int, str]
"""An issue's number and its state."""

ToldValue = tuple[str, str, int]
"""A value that stands in an issue's facts: field, value in lower case, number."""

ToldName = Literal["failure_kind", "error_type", "has_remedy"]
ToldOf = tuple[str, int]
"""What is told of an issue as a whole, and its number."""


def listed_states(session: Session, repo_id: int, *, since: datetime | None = None) -> list[Listed]:
    """All issues with their states, or those opened at or after a time."""
    return _plain(session, sql_select(_ISSUE.number, _ISSUE.state).where(*_listed(repo_id, since)))


def numbers_labelled(session: Session, repo_id: int, label: str) -> set[int]:
    """The issues that carry a label, whatever its case."""
    wanted = label.casefold()
    query = sql_select(_ISSUE.number, _ISSUE.labels).where(*_listed(repo_id))
    return {
        number
        for number, labels in session.connection().execute(query)
        if any(name.casefold() == wanted for name in labels)
    }


def _listed(repo_id: int, since: datetime | None = None) -> list[Any]:
    told: list[ColumnElement[bool]] = [
        _ISSUE.repo_id == repo_id,
        _ISSUE.is_pull_request.is_(False),
        _ISSUE.gone_at.is_(None),
    ]
    if since is not None:
        told.append(_ISSUE.created_at >= since)
    return told


def told_values_of(session: Session, repo_id: int, fields: Sequence[str]) -> list[ToldValue]:
    """What stands in the facts of all issues under these fields."""
    query = sql_select(_FACT.field, _FACT.value_key, _FACT.number).where(
        _FACT.field.in_(list(fields)), _FACT.repo_id == repo_id
    )
    return _plain(session, query)


def told_of_issues(session: Session, repo_id: int, name: ToldName) -> list[ToldOf]:
    """What is told of the issues that were read; those of which it is not told are left out."""
    column = _READING[name]
    is_told = column.is_(True) if name == "has_remedy" else column.is_not(None)
    return _plain(session, sql_select(column, _READING.number).where(_READING.repo_id == repo_id, is_told))


def _plain(session: Session, query: Select[Any]) -> list[Any]:
    """The driver's own rows, for texts and numbers by the ten thousand: wrapping them costs half the time."""
    result = session.connection().execute(query)
    rows = result.cursor.fetchall() if result.cursor is not None else []
    result.close()
    return list(rows)


def find_estimated_dates(session: Session, repo_id: int, numbers: Sequence[int]) -> set[int]:
    """Which of these issues came from a file whose dates are estimates, as the file itself says."""
    query = sql_select(_ISSUE.number).where(
        _ISSUE.repo_id == repo_id,
        _ISSUE.number.in_(list(numbers)),
        _ISSUE.raw["x_dates_estimated"].as_boolean().is_(True),
    )
    return set(session.connection().execute(query).scalars())


def find_titles(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    """The titles of these issues."""
    query = sql_select(_ISSUE.number, _ISSUE.title).where(
        _ISSUE.repo_id == repo_id, _ISSUE.number.in_(list(numbers))
    )
    return {number: title for number, title in session.connection().execute(query)}  # noqa: C416
