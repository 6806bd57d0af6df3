"""What was extracted from issues: facts with their evidence, signatures, links; and what must be read again.

An issue is stale when nothing was read out of it yet, when it or one of its comments was stored (or the
comment went) after it was read, or when it was read under other rules. So facts may be derived at any time
after the raw JSON is stored: whatever a killed run left undone is done by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, insert, or_
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, exists, select

from app.extract.facts import Evidence, Facts
from app.store.engine.connect import upsert
from app.store.engine.rows import AMONG, plain_rows, sql_rows
from app.store.records import LinkRecord
from app.store.tables import (
    CommentRow,
    FactRow,
    IssueRow,
    LinkRow,
    OccurrenceRow,
    ReadingRow,
    metadata,
)


@dataclass(frozen=True, slots=True)
class KeptReading:
    """One issue's reading; `facts` is None where a rule threw, and `fault` then names the exception."""

    number: int
    rules_version: str
    facts: Mapping[str, Any] | None
    fault: str | None
    evidence: tuple[Evidence, ...]
    links: tuple[LinkRecord, ...]


def find_kept_readings(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, KeptReading]:
    """The kept readings of these issues; an issue that was never read is left out."""
    query = select(ReadingRow.number, ReadingRow.rules_version, ReadingRow.facts, ReadingRow.fault).where(
        ReadingRow.repo_id == repo_id, col(ReadingRow.number).in_(list(numbers))
    )
    evidence = find_evidence(session, repo_id, numbers)
    links = _links(session, repo_id, numbers)
    return {
        number: KeptReading(
            number, rules, facts, fault, tuple(evidence.get(number, ())), tuple(links.get(number, ()))
        )
        for number, rules, facts, fault in session.exec(query)
    }


def _links(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, list[LinkRecord]]:
    query = sql_select(_LINK.number, *_LINK_COLUMNS).where(
        _LINK.repo_id == repo_id, _LINK.number.in_(numbers), _LINK.kind.in_(EXTRACTED_LINK_KINDS)
    )
    found: dict[int, list[LinkRecord]] = {}
    for number, *values in session.connection().execute(query):
        found.setdefault(number, []).append(LinkRecord(*values))
    return found


VALUE_KEY_CHARS = 120

_NO_FACTS = frozenset({None, "null"})
"""How it is kept that an issue could not be read: without a value, or with that of JSON."""

EXTRACTED_LINK_KINDS = ("mentions", "fixes", "fixed_by", "introduced_by", "duplicate", "reverts", "relands")

_FACT, _LINK = metadata.tables["fact"].c, metadata.tables["link"].c
_LINK_COLUMNS = [_LINK[item.name] for item in fields(LinkRecord)]


@dataclass(frozen=True, slots=True)
class Reading:
    """One issue's facts, or the fault that kept them from being read; and its links."""

    number: int
    facts: Facts | None
    fault: str | None = None
    links: tuple[LinkRecord, ...] = ()


def value_key(value: str) -> str:
    """A fact's value as filters compare it."""
    return value.lower()[:VALUE_KEY_CHARS]


def save_readings(session: Session, repo_id: int, readings: Sequence[Reading], *, rules_version: str) -> None:
    """Replace what is known of these issues."""
    numbers = [reading.number for reading in readings]
    for table in (FactRow, OccurrenceRow):
        session.connection().execute(
            delete(table).where(col(table.repo_id) == repo_id, col(table.number).in_(numbers))
        )
    session.connection().execute(
        delete(LinkRow).where(
            col(LinkRow.repo_id) == repo_id,
            col(LinkRow.number).in_(numbers),
            col(LinkRow.kind).in_(EXTRACTED_LINK_KINDS),
        )
    )
    now = datetime.now(UTC)
    upsert(
        session,
        metadata.tables["reading"],
        [_reading_row(repo_id, reading, rules_version, now) for reading in readings],
        keys=("repo_id", "number"),
    )
    _insert(session, "fact", [row for reading in readings for row in _fact_rows(repo_id, reading)])
    signatures = {item.id: item.text for r in readings if r.facts for item in r.facts.signatures}
    upsert(
        session,
        metadata.tables["signature"],
        [{"id": key, "text": signatures[key]} for key in sorted(signatures)],
        keys=("id",),
    )
    _insert(session, "occurrence", list(_occurrence_rows(repo_id, readings)))
    _insert(session, "link", list(_link_rows(repo_id, readings)))


def _insert(session: Session, table: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        session.connection().execute(insert(metadata.tables[table]), rows)


def _reading_row(repo_id: int, reading: Reading, rules_version: str, now: datetime) -> dict[str, Any]:
    facts = reading.facts.model_dump(mode="json", exclude={"evidence"}) if reading.facts else None
    return {
        "repo_id": repo_id,
        "number": reading.number,
        "rules_version": rules_version,
        "facts": facts,
        "fault": reading.fault,
        "read_at": now,
        **_filters(reading.facts),
    }


def _filters(facts: Facts | None) -> dict[str, Any]:
    """What lists filter by, beside the facts."""
    kind = facts.error.type if facts and facts.error else None
    return {
        "failure_kind": facts.failure_kind if facts else None,
        "error_type": kind[:VALUE_KEY_CHARS] if kind else None,
        "has_remedy": any(item.outcome != "fails" for item in facts.workarounds) if facts else None,
    }


def _fact_rows(repo_id: int, reading: Reading) -> Iterable[dict[str, Any]]:
    for position, item in enumerate(reading.facts.evidence if reading.facts else ()):
        yield {
            "repo_id": repo_id,
            "number": reading.number,
            "position": position,
            "value_key": value_key(item.value),
            **item.model_dump(),
        }


def _occurrence_rows(repo_id: int, readings: Iterable[Reading]) -> Iterable[dict[str, Any]]:
    for reading in readings:
        roles = {item.id: item.role for item in reversed(reading.facts.signatures if reading.facts else ())}
        for signature_id, role in roles.items():
            yield {"repo_id": repo_id, "number": reading.number, "signature_id": signature_id, "role": role}


def _link_rows(repo_id: int, readings: Iterable[Reading]) -> Iterable[dict[str, Any]]:
    for reading in readings:
        links = {(link.target_repo, link.target_number, link.kind): link for link in reading.links}
        for link in links.values():
            yield {
                "repo_id": repo_id,
                "number": reading.number,
                "target_repo": link.target_repo,
                "target_number": link.target_number,
                "kind": link.kind,
                "score": link.score,
                "channel": link.channel,
                "reason": link.reason,
            }


def find_facts(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Facts]:
    """The facts of these issues with their evidence; an issue that could not be read is left out."""
    evidence = find_evidence(session, repo_id, numbers)
    return {
        number: facts.model_copy(update={"evidence": tuple(evidence.get(number, ()))})
        for number, facts in find_facts_without_evidence(session, repo_id, numbers).items()
    }


def find_evidence(
    session: Session, repo_id: int, numbers: Sequence[int], among: Sequence[str] = ()
) -> dict[int, list[Evidence]]:
    """The evidence of these issues in the order in which it was read, of all fields or `among` these."""
    query = (
        sql_select(_FACT.number, *(_FACT[name] for name in Evidence.model_fields))
        .where(_FACT.repo_id == repo_id, _FACT.number.in_(numbers))
        .order_by(_FACT.number, _FACT.position)
    )
    if among:
        query = query.where(_FACT.field.in_(among))
    found: dict[int, list[Evidence]] = {}
    for number, *values in session.connection().execute(query):
        item = Evidence.model_construct(**dict(zip(Evidence.model_fields, values, strict=True)))
        found.setdefault(number, []).append(item)
    return found


def find_facts_without_evidence(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Facts]:
    """The facts of these issues, cheaper: `evidence` is empty."""
    # As text, of which the model is made in one go, without the objects that JSON would be made into first.
    asked = f"SELECT number, CAST(facts AS text) FROM reading WHERE repo_id = {int(repo_id)}"  # noqa: S608
    rows = plain_rows(session, f"{asked} AND number {AMONG}", numbers)
    return {number: Facts.model_validate_json(facts) for number, facts in rows if facts not in _NO_FACTS}


def links_to(session: Session, repo: str, numbers: Sequence[int], kind: str) -> list[tuple[int, int, int]]:
    """Links of one kind that point at these issues: (repo_id and number they come from, target)."""
    query = """
        SELECT repo_id, number, target_number FROM link
        WHERE target_repo = :repo AND target_number IN :numbers AND kind = :kind
    """
    return sql_rows(session, query, repo=repo, numbers=list(numbers), kind=kind)


def links_from(session: Session, repo_id: int, number: int) -> list[LinkRecord]:
    """All links of one issue."""
    query = sql_select(*_LINK_COLUMNS).where(_LINK.repo_id == repo_id, _LINK.number == number)
    return [LinkRecord(*row) for row in session.connection().execute(query)]


def all_links_to(session: Session, repo: str, number: int) -> list[tuple[int, int, str, str]]:
    """Links that point at an issue: (repo_id and number they come from, kind, reason)."""
    query = (
        "SELECT repo_id, number, kind, reason FROM link WHERE target_repo = :repo AND target_number = :number"
    )
    return sql_rows(session, query, repo=repo, number=number)


def words_on_fixes(
    session: Session, repo_id: int, numbers: Sequence[int]
) -> dict[int, tuple[str, str | None]]:
    """The quote that states the fix of each of these issues, and a commenter's association."""
    query = """
        SELECT fact.number, fact.quote, comment.author_association FROM fact
        LEFT JOIN comment ON comment.repo_id = fact.repo_id AND comment.issue_number = fact.number
        AND fact.source = 'comment:' || CAST(comment.id AS text)
        WHERE fact.repo_id = :repo_id AND fact.number IN :numbers AND fact.field = 'fix'
    """
    rows = sql_rows(session, query, repo_id=repo_id, numbers=list(numbers))
    return {number: (quote, association) for number, quote, association in rows}


def duplicates_of(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> dict[int, int]:
    """Which issue of the same repository each of these is said to repeat, where that is said."""
    query = """
        SELECT number, target_number FROM link
        WHERE repo_id = :repo_id AND number IN :numbers AND target_repo = :repo AND kind = 'duplicate'
    """
    return dict(sql_rows(session, query, repo_id=repo_id, repo=repo, numbers=list(numbers)))


def stale_numbers(
    session: Session,
    repo_id: int,
    rules_version: str,
    *,
    after: int = 0,
    limit: int = 1_000_000,
    among: Sequence[int] | None = None,
) -> list[int]:
    """The next stale numbers above `after`, ascending; only `among` these, if any are given."""
    newer_comment = exists().where(
        col(CommentRow.repo_id) == col(IssueRow.repo_id),
        col(CommentRow.issue_number) == col(IssueRow.number),
        col(CommentRow.fetched_at) > col(ReadingRow.read_at),
    )
    query = (
        select(IssueRow.number)
        .join(
            ReadingRow,
            (col(ReadingRow.repo_id) == col(IssueRow.repo_id))
            & (col(ReadingRow.number) == col(IssueRow.number)),
            isouter=True,
        )
        .where(
            IssueRow.repo_id == repo_id,
            col(IssueRow.number) > after,
            or_(
                col(ReadingRow.number).is_(None),
                col(ReadingRow.rules_version) != rules_version,
                col(ReadingRow.read_at) < col(IssueRow.fetched_at),
                newer_comment,
            ),
        )
        .order_by(col(IssueRow.number))
        .limit(limit)
    )
    if among is not None:
        query = query.where(col(IssueRow.number).in_(list(among)))
    return list(session.exec(query))
