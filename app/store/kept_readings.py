"""Readings as they were kept, whatever rules they are from: what `save_readings` wrote, found again.

Their facts stay JSON: rules that are older than the program may have left another shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.extract.facts import Evidence
from app.store.readings import EXTRACTED_LINK_KINDS
from app.store.records import LinkRecord
from app.store.tables import FactRow, LinkRow, ReadingRow


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
    evidence = _evidence(session, repo_id, numbers)
    links = _links(session, repo_id, numbers)
    return {
        number: KeptReading(
            number, rules, facts, fault, tuple(evidence.get(number, ())), tuple(links.get(number, ()))
        )
        for number, rules, facts, fault in session.exec(query)
    }


def _evidence(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, list[Evidence]]:
    query = (
        select(FactRow)
        .where(FactRow.repo_id == repo_id, col(FactRow.number).in_(list(numbers)))
        .order_by(col(FactRow.number), col(FactRow.position))
    )
    found: dict[int, list[Evidence]] = {}
    for row in session.exec(query):
        item = Evidence.model_construct(
            field=row.field, value=row.value, quote=row.quote, source=row.source,
            start=row.start, end=row.end, rule=row.rule, confidence=row.confidence,
        )  # fmt: skip
        found.setdefault(row.number, []).append(item)
    return found


def _links(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, list[LinkRecord]]:
    query = select(LinkRow).where(
        LinkRow.repo_id == repo_id,
        col(LinkRow.number).in_(list(numbers)),
        col(LinkRow.kind).in_(EXTRACTED_LINK_KINDS),
    )
    found: dict[int, list[LinkRecord]] = {}
    for row in session.exec(query):
        item = LinkRecord(row.target_repo, row.target_number, row.kind, row.reason, row.score, row.channel)
        found.setdefault(row.number, []).append(item)
    return found
