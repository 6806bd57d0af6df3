"""Which issues name which version, by the index over the facts; and what was merged between two."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import or_
from sqlalchemy import select as sql_select
from sqlmodel import Session

from app.extract.facts import Evidence, Regression
from app.store.derived.readings import find_evidence
from app.store.engine.rows import sql_rows
from app.store.tables import metadata

REGRESSION_FIELDS = tuple(f"regression.{name}" for name in Regression.model_fields)
NUMBERS_PER_STATEMENT = 5000
"""Below what SQLite binds in one statement."""

_FACT, _READING = metadata.tables["fact"].c, metadata.tables["reading"].c
_ISSUE, _PULL = metadata.tables["issue"].c, metadata.tables["pull_request"].c
_NAMED = metadata.tables["release_pull"].c


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
    stated = sql_select(_FACT.number).where(_FACT.field.in_(REGRESSION_FIELDS))
    query = (
        sql_select(_READING.number, _READING.facts["regression"], _ISSUE.state)
        .join_from(
            metadata.tables["reading"],
            metadata.tables["issue"],
            (_ISSUE.repo_id == _READING.repo_id) & (_ISSUE.number == _READING.number),
        )
        .where(
            _READING.repo_id == repo_id,
            _READING.number.in_(stated),
            _ISSUE.gone_at.is_(None),
            _ISSUE.is_pull_request.is_(False),
            _READING.facts["is_failure"].as_boolean(),
        )
    )
    return {
        number: StatedRange(Regression.model_validate(value), state == "open")
        for number, value, state in session.connection().execute(query)
        if value
    }


def evidence_of(
    session: Session, repo_id: int, numbers: Sequence[int], fields: Sequence[str]
) -> dict[int, list[Evidence]]:
    """The evidence of these fields, in the order in which it was read."""
    return find_evidence(session, repo_id, numbers, fields)


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
    named = sql_select(_NAMED.number).where(_NAMED.repo_id == repo_id, _NAMED.tag.in_(list(tags)))
    out = sql_select(_NAMED.number).where(_NAMED.repo_id == repo_id, _NAMED.tag.in_(list(lacking)))
    query = (
        sql_select(_PULL.number, _ISSUE.title, _ISSUE.url, _PULL.merged_at)
        .join_from(
            metadata.tables["pull_request"],
            metadata.tables["issue"],
            (_ISSUE.repo_id == _PULL.repo_id) & (_ISSUE.number == _PULL.number),
        )
        .where(
            _PULL.repo_id == repo_id,
            _PULL.merged_at.is_not(None),
            _PULL.merged_at <= before,
            or_(_PULL.merged_at > after, _PULL.number.in_(named)),
            _PULL.number.not_in(out),
        )
        .order_by(_PULL.merged_at, _PULL.number)
    )
    return [Merged(*row) for row in session.connection().execute(query)]
