"""Questions to the facts of all issues, by indexes that hold no texts: by field, by version, by place.

The issues of lists are those of one repository that GitHub still has; pull requests are none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy.orm import Session

from app.extract.facts import Regression
from app.store.engine.connect import joined, sql_rows
from app.store.records import CARD

Numbers = npt.NDArray[np.int64]
"""Numbers of issues."""
OrderColumn = Literal["updated_at", "comments", "reactions"]

_LISTED = "repo_id = :repo_id AND is_pull_request = false AND gone_at IS NULL"


def numbers_by_state(session: Session, repo_id: int, *, since: datetime | None = None) -> dict[str, Numbers]:
    """All issues by their states, or those opened at or after a time."""
    later = "" if since is None else "AND created_at >= :since"
    bound: dict[str, Any] = {} if since is None else {"since": since}
    query = f"SELECT state, {_joined(session)} FROM issue WHERE {_LISTED} {later} GROUP BY state"
    return {state: _numbers(text) for state, text in sql_rows(session, query, repo_id=repo_id, **bound)}


def numbers_updated(session: Session, repo_id: int, since: datetime) -> Numbers:
    """The issues that changed at or after a time."""
    query = f"SELECT {_joined(session)} FROM issue WHERE {_LISTED} AND updated_at >= :since"
    return _numbers(sql_rows(session, query, repo_id=repo_id, since=since)[0][0])


def numbers_by(session: Session, repo_id: int, column: OrderColumn) -> Numbers:
    """All issues and pull requests with a value, those with the most or the latest first."""
    query = f"SELECT number FROM issue WHERE repo_id = :repo_id AND {column} IS NOT NULL"
    rows = sql_rows(session, f"{query} ORDER BY {column} DESC, number DESC", repo_id=repo_id)
    return np.fromiter((number for (number,) in rows), np.int64, len(rows))


def numbers_labelled(session: Session, repo_id: int, label: str) -> Numbers:
    """The issues that carry a label, whatever its case."""
    query = f"SELECT CAST(labels AS text), {_joined(session)} FROM issue WHERE {_LISTED} GROUP BY 1"
    wanted = label.casefold()
    rows = sql_rows(session, query, repo_id=repo_id)
    parts = [_numbers(text) for labels, text in rows if wanted in map(str.casefold, json.loads(labels))]
    return np.concatenate(parts) if parts else _numbers(None)


def numbers_by_value(
    session: Session, repo_id: int, fields: Sequence[str]
) -> Iterator[tuple[str, str, Numbers]]:
    """What stands in the facts of all issues under these fields: field, value in lower case, issues."""
    # One field after the other: so SQLite groups along the index, and sorts nothing.
    query = f"""
        SELECT value_key, {_joined(session)} FROM fact
        WHERE field = :field AND repo_id = :repo_id GROUP BY value_key
    """
    for field in fields:
        for key, text in sql_rows(session, query, repo_id=repo_id, field=field):
            yield field, key, _numbers(text)


def values_in_titles(
    session: Session, repo_id: int, numbers: Sequence[int], fields: Sequence[str]
) -> list[tuple[int, str, str]]:
    """What the titles of these issues say: number, field, value."""
    query = """
        SELECT number, field, value FROM fact
        WHERE repo_id = :repo_id AND number IN :numbers AND field IN :fields AND source = 'title'
        ORDER BY number, position
    """
    return sql_rows(session, query, repo_id=repo_id, numbers=list(numbers), fields=list(fields))


def numbers_by_reading(session: Session, repo_id: int) -> list[ReadingGroup]:
    """The issues that were read, by what lists filter by."""
    query = f"""
        SELECT failure_kind, error_type, has_remedy, {joined(session, "number")} FROM reading
        WHERE repo_id = :repo_id GROUP BY failure_kind, error_type, has_remedy
    """
    rows = sql_rows(session, query, repo_id=repo_id)
    return [ReadingGroup(kind, error, bool(remedy), _numbers(text)) for kind, error, remedy, text in rows]


def _joined(session: Session) -> str:
    """What gives the numbers of a group as one text: a tuple for each would cost ten times as much."""
    return joined(session, "DISTINCT number")


def _numbers(text: str | None) -> Numbers:
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, dtype=np.int64)


def find_estimated_dates(session: Session, repo_id: int, numbers: Sequence[int]) -> set[int]:
    """Which of these issues came from a file whose dates are estimates, as the file itself says."""
    query = """
        SELECT number FROM issue WHERE repo_id = :repo_id AND number IN :numbers
        AND CAST(raw ->> 'x_dates_estimated' AS text) IN ('1', 'true')
    """
    return {number for (number,) in sql_rows(session, query, repo_id=repo_id, numbers=list(numbers))}


def find_titles(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    query = "SELECT number, title FROM issue WHERE repo_id = :repo_id AND number IN :numbers"
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(numbers)))


def find_titles_with(session: Session, repo_id: int, part: str) -> dict[int, str]:
    """By number the titles that hold a part, which has no capital letters and is no pattern."""
    query = "SELECT number, title FROM issue WHERE repo_id = :repo_id AND lower(title) LIKE :part"
    return dict(sql_rows(session, query, repo_id=repo_id, part=f"%{part}%"))


REGRESSION_FIELDS = tuple(f"regression.{name}" for name in Regression.model_fields)
NUMBERS_PER_STATEMENT = 5000
"""Below what SQLite binds in one statement."""


class ReadingGroup(NamedTuple):
    """Issues of which the same was read."""

    failure_kind: str | None
    error_type: str | None
    has_remedy: bool
    numbers: Numbers


class StatedRange(NamedTuple):
    """The range a failure states, and whether its issue is open."""

    span: Regression
    is_open: bool


class Merged(NamedTuple):
    """A merged pull request."""

    number: int
    title: str
    url: str
    merged_at: datetime


def known_values(session: Session, field: str) -> list[str]:
    """The values of a field that stand in any repository's facts, in lower case, each once."""
    # Without the repository the index alone answers; what another one says matches none of ours.
    rows = sql_rows(session, "SELECT DISTINCT value_key FROM fact WHERE field = :field", field=field)
    return [value for (value,) in rows]


def often_stated(session: Session, repo_id: int, field: str, issues_min: int) -> set[str]:
    """The values of a field, in lower case, that at least so many issues of a repository have."""
    query = """
        SELECT value_key FROM fact WHERE field = :field AND repo_id = :repo_id
        GROUP BY value_key HAVING count(DISTINCT number) >= :issues_min
    """
    rows = sql_rows(session, query, field=field, repo_id=repo_id, issues_min=issues_min)
    return {value for (value,) in rows}


def numbers_with(session: Session, repo_id: int, field: str, values: Sequence[str]) -> list[int]:
    """The issues whose facts hold one of these values, given in lower case."""
    query = """
        SELECT DISTINCT number FROM fact
        WHERE repo_id = :repo_id AND field = :field AND value_key IN :value_keys
    """
    rows = sql_rows(session, query, repo_id=repo_id, field=field, value_keys=list(values))
    return [number for (number,) in rows]


def stated_regressions(session: Session, repo_id: int) -> dict[int, StatedRange]:
    """The range of every failure that states one and is still on GitHub."""
    # The index of facts by field finds the few; with the repository, SQLite would walk the one by issue.
    # The range itself is read where it was written as one.
    query = """
        SELECT reading.number, CAST(facts -> 'regression' AS text), issue.state FROM reading
        JOIN issue ON issue.repo_id = reading.repo_id AND issue.number = reading.number
        WHERE reading.repo_id = :repo_id AND is_pull_request = false AND gone_at IS NULL
        AND reading.number IN (SELECT number FROM fact WHERE field IN :fields)
        AND CAST(facts ->> 'is_failure' AS text) IN ('1', 'true')
    """
    return {
        number: StatedRange(Regression.model_validate_json(value), state == "open")
        for number, value, state in sql_rows(session, query, repo_id=repo_id, fields=list(REGRESSION_FIELDS))
        if value not in {None, "null"}
    }


def count_duplicates(session: Session, repo: str, repo_id: int, numbers: Sequence[int]) -> dict[int, int]:
    """How many issues of the repository are said to repeat each of these."""
    query = """
        SELECT target_number, count(*) FROM link
        WHERE repo_id = :repo_id AND target_repo = :repo AND kind = 'duplicate' AND target_number IN :numbers
        GROUP BY target_number
    """
    asked = list(numbers)[:NUMBERS_PER_STATEMENT]
    return dict(sql_rows(session, query, repo_id=repo_id, repo=repo, numbers=asked))


def merged_between(
    session: Session,
    repo_id: int,
    *,
    after: datetime,
    before: datetime,
    tags: Sequence[str],
    lacking: Sequence[str],
) -> list[Merged]:
    """Pull requests merged in this time or named in the notes of `tags`, and not in those of `lacking`."""
    query = """
        SELECT p.number, i.title, i.url, p.merged_at FROM pull_request p
        JOIN issue i ON i.repo_id = p.repo_id AND i.number = p.number
        WHERE p.repo_id = :repo_id AND p.merged_at <= :before AND (p.merged_at > :after OR p.number IN (
            SELECT number FROM release_pull WHERE repo_id = :repo_id AND tag IN :tags))
        AND p.number NOT IN (SELECT number FROM release_pull WHERE repo_id = :repo_id AND tag IN :lacking)
        ORDER BY p.merged_at, p.number
    """
    bound: dict[str, Any] = {
        "tags": list(tags) or [""],
        "lacking": list(lacking) or [""],
        "after": after,
        "before": before,
    }
    rows = sql_rows(session, query, times=("merged_at",), repo_id=repo_id, **bound)
    return [Merged(*row) for row in rows]


CAUSE = "error.message"
WRAPPER = "error.wrappers"
BODY = "body"


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """A quote of the text, and where it begins."""

    quote: str
    start: int


@dataclass(frozen=True, slots=True)
class StatedError:
    """`text` is the body; where only a card is known, the card's file. Places are those of `text`."""

    text: str
    is_card: bool
    cause: ErrorSpan
    wrappers: tuple[ErrorSpan, ...] = ()
    frame: str | None = None


def find_stated_error(session: Session, repo_id: int, number: int) -> StatedError | None:
    """Where the issue's own text states its error; None if it does not."""
    query = """
        SELECT issue.origin, issue.body, card.text, reading.facts -> 'error' ->> 'frame' FROM issue
        LEFT JOIN card ON card.repo_id = issue.repo_id AND card.number = issue.number
        LEFT JOIN reading ON reading.repo_id = issue.repo_id AND reading.number = issue.number
        WHERE issue.repo_id = :repo_id AND issue.number = :number
    """
    issue = sql_rows(session, query, repo_id=repo_id, number=number)
    if not issue:
        return None
    origin, body, card, frame = issue[0]
    is_card = origin == CARD and card is not None
    query = """
        SELECT field, quote, start FROM fact
        WHERE repo_id = :repo_id AND number = :number AND field IN :fields AND source = :source
        ORDER BY position
    """
    source, fields = CARD if is_card else BODY, [CAUSE, WRAPPER]
    rows = sql_rows(session, query, repo_id=repo_id, number=number, fields=fields, source=source)
    spans = [(field, ErrorSpan(quote, start)) for field, quote, start in rows]
    cause = next((span for field, span in spans if field == CAUSE), None)
    if cause is None:
        return None
    wrappers = tuple(span for field, span in spans if field == WRAPPER)
    return StatedError(card if is_card else body, is_card, cause, wrappers, frame)
