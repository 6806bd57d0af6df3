"""Queries over the facts of all issues, answered from covering indexes without reading texts.

Listed issues are those of one repository that still exist on GitHub, without pull requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy.orm import Session

from app.extract.facts import Regression
from app.store.engine.connect import joined, parse_joined, sql_rows
from app.store.memo import kept_until_written

Numbers = npt.NDArray[np.int64]
"""Issue numbers."""
OrderColumn = Literal["updated_at", "comments", "reactions"]

_LISTED = "repo_id = :repo_id AND is_pull_request = false AND gone_at IS NULL"


@kept_until_written
def numbers_by_state(session: Session, repo_id: int) -> Mapping[str, Numbers]:
    """Return issue numbers by state."""
    query = f"SELECT state, {joined(session, 'number')} FROM issue WHERE {_LISTED} GROUP BY state"
    return {state: parse_joined(text) for state, text in sql_rows(session, query, repo_id=repo_id)}


def numbers_since(
    session: Session, repo_id: int, column: Literal["created_at", "updated_at"], since: datetime
) -> Numbers:
    """Return the issues opened or updated at or after a time."""
    query = f"SELECT {joined(session, 'number')} FROM issue WHERE {_LISTED} AND {column} >= :since"
    return parse_joined(sql_rows(session, query, repo_id=repo_id, since=since)[0][0])


@kept_until_written
def numbers_by(session: Session, repo_id: int, column: OrderColumn) -> Numbers:
    """Return the issues and pull requests with a value in the column, in descending order of it."""
    query = f"SELECT number FROM issue WHERE repo_id = :repo_id AND {column} IS NOT NULL"
    rows = sql_rows(session, f"{query} ORDER BY {column} DESC, number DESC", repo_id=repo_id)
    return np.fromiter((number for (number,) in rows), np.int64, len(rows))


def numbers_labelled(session: Session, repo_id: int, label: str) -> Numbers:
    """Return the issues with a label, compared case-insensitively."""
    numbers = joined(session, "number")
    query = f"SELECT CAST(labels AS text), {numbers} FROM issue WHERE {_LISTED} GROUP BY 1"
    wanted = label.casefold()
    rows = sql_rows(session, query, repo_id=repo_id)
    parts = [parse_joined(text) for labels, text in rows if wanted in map(str.casefold, json.loads(labels))]
    return np.concatenate(parts) if parts else parse_joined(None)


def numbers_by_value(
    session: Session, repo_id: int, fields: Sequence[str]
) -> Iterator[tuple[str, str, Numbers]]:
    """Yield (field, lowercase value, issue numbers) for every value of these fields."""
    for field in fields:
        for key, numbers in _numbers_of(session, repo_id, field).items():
            yield field, key, numbers


@kept_until_written
def _numbers_of(session: Session, repo_id: int, field: str) -> Mapping[str, Numbers]:
    """Return the issues by lowercase value of a field."""
    # One query per field lets SQLite group by index order without sorting.
    query = f"""
        SELECT value_key, {joined(session, "DISTINCT number")} FROM fact
        WHERE field = :field AND repo_id = :repo_id GROUP BY value_key
    """
    rows = sql_rows(session, query, repo_id=repo_id, field=field)
    return {key: parse_joined(text) for key, text in rows}


def values_in_titles(
    session: Session, repo_id: int, numbers: Sequence[int], fields: Sequence[str]
) -> list[tuple[int, str, str]]:
    """Return (number, field, value) of facts found in the titles of these issues."""
    query = """
        SELECT number, field, value FROM fact
        WHERE repo_id = :repo_id AND number IN :numbers AND field IN :fields AND source = 'title'
        ORDER BY number, position
    """
    return sql_rows(session, query, repo_id=repo_id, numbers=list(numbers), fields=list(fields))


@kept_until_written
def numbers_by_reading(session: Session, repo_id: int) -> Sequence[ReadingGroup]:
    """Return all issues that have been read, grouped by the columns that lists filter by."""
    query = f"""
        SELECT failure_kind, error_type, has_remedy, {joined(session, "number")} FROM reading
        WHERE repo_id = :repo_id GROUP BY failure_kind, error_type, has_remedy
    """
    rows = sql_rows(session, query, repo_id=repo_id)
    return [ReadingGroup(kind, error, bool(remedy), parse_joined(text)) for kind, error, remedy, text in rows]


def find_estimated_dates(session: Session, repo_id: int, numbers: Sequence[int]) -> set[int]:
    """Return those of these issues that were imported from a file that marks its dates as estimated."""
    query = """
        SELECT number FROM issue WHERE repo_id = :repo_id AND number IN :numbers
        AND CAST(raw ->> 'x_dates_estimated' AS text) IN ('1', 'true')
    """
    return {number for (number,) in sql_rows(session, query, repo_id=repo_id, numbers=list(numbers))}


def find_titles(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    query = "SELECT number, title FROM issue WHERE repo_id = :repo_id AND number IN :numbers"
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(numbers)))


def find_titles_with(session: Session, repo_id: int, part: str) -> dict[int, str]:
    """Return titles that contain `part`, by number; `part` is lowercase, without LIKE wildcards."""
    query = "SELECT number, title FROM issue WHERE repo_id = :repo_id AND lower(title) LIKE :part"
    return dict(sql_rows(session, query, repo_id=repo_id, part=f"%{part}%"))


REGRESSION_FIELDS = tuple(f"regression.{name}" for name in Regression.model_fields)
_NO_RANGE = frozenset([None, "null"])
NUMBERS_PER_STATEMENT = 5000
"""Below SQLite's limit on bound values."""


class ReadingGroup(NamedTuple):
    """Issues with the same failure kind, error type and presence of a remedy."""

    failure_kind: str | None
    error_type: str | None
    has_remedy: bool
    numbers: Numbers


class StatedRange(NamedTuple):
    """The regression range stated in an issue, and whether the issue is open."""

    span: Regression
    is_open: bool


def known_values(session: Session, field: str) -> list[str]:
    """Return the distinct lowercase values of a field, over all repositories."""
    # Without a repository filter the index suffices; values from other repositories match no issue of ours.
    rows = sql_rows(session, "SELECT DISTINCT value_key FROM fact WHERE field = :field", field=field)
    return [value for (value,) in rows]


@kept_until_written
def often_stated(session: Session, repo_id: int, field: str, issues_min: int) -> frozenset[str]:
    """Return the lowercase values of a field that at least `issues_min` issues of a repository have."""
    query = """
        SELECT value_key FROM fact WHERE field = :field AND repo_id = :repo_id
        GROUP BY value_key HAVING count(DISTINCT number) >= :issues_min
    """
    rows = sql_rows(session, query, field=field, repo_id=repo_id, issues_min=issues_min)
    return frozenset(value for (value,) in rows)


@kept_until_written
def stated_regressions(session: Session, repo_id: int) -> Mapping[int, StatedRange]:
    """Return the stated regression range of every failure that has one and still exists on GitHub.

    Issues that state the same range share one object.
    """
    # The index of facts by field finds the few rows; filtering by repository too, SQLite would use the one by
    # issue. The range itself is read from `reading`, where it is stored as one object.
    query = """
        SELECT reading.number, CAST(facts -> 'regression' AS text), issue.state FROM reading
        JOIN issue ON issue.repo_id = reading.repo_id AND issue.number = reading.number
        WHERE reading.repo_id = :repo_id AND is_pull_request = false AND gone_at IS NULL
        AND reading.number IN (SELECT number FROM fact WHERE field IN :fields)
        AND reading.failure_kind <> 'none'
    """
    rows = sql_rows(session, query, repo_id=repo_id, fields=list(REGRESSION_FIELDS))
    span_of = cache(Regression.model_validate_json)
    return {
        n: StatedRange(span_of(text), state == "open") for n, text, state in rows if text not in _NO_RANGE
    }


def count_duplicates(session: Session, repo: str, repo_id: int, numbers: Sequence[int]) -> dict[int, int]:
    """Count the issues of the repository that are stated to be duplicates of each of these."""
    query = """
        SELECT target_number, count(*) FROM link
        WHERE repo_id = :repo_id AND target_repo = :repo AND kind = 'duplicate' AND target_number IN :numbers
        GROUP BY target_number
    """
    asked = list(numbers)[:NUMBERS_PER_STATEMENT]
    return dict(sql_rows(session, query, repo_id=repo_id, repo=repo, numbers=asked))
