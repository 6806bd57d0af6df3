"""People's word on two issues: kept apart from all that is derived, so that no rebuild touches it.

For each pair at most one judgement is in force. One that is undone or replaced stays as a row of its own,
with when and why it ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from sqlalchemy import BindParameter, bindparam, or_, update
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.store.engine.connect import take_turn
from app.store.records import Pair
from app.store.tables import JudgementRow, metadata

Verdict = Literal["same", "different"]
UndoneWhy = Literal["undone", "replaced"]
NUMBERS_MAX = 500
"""Of more issues all pairs of the repository are read: people judge few."""

_JUDGED = metadata.tables["judgement"].c
_NUMBERS: BindParameter[Any] = bindparam("numbers", expanding=True)
# Asked with every issue, so built once.
_IN_FORCE = sql_select(_JUDGED.a, _JUDGED.b, _JUDGED.verdict).where(
    _JUDGED.repo_id == bindparam("repo_id"), _JUDGED.undone_at.is_(None)
)
_AMONG = _IN_FORCE.where(or_(_JUDGED.a.in_(_NUMBERS), _JUDGED.b.in_(_NUMBERS)))


@dataclass(frozen=True, slots=True)
class JudgementRecord:
    """A judgement, in force while `undone_at` is None."""

    id: int
    repo_id: int
    a: int
    b: int
    verdict: Verdict
    note: str | None
    judged_at: datetime
    undone_at: datetime | None = None
    undone_why: UndoneWhy | None = None


def save_judgement(
    session: Session, repo_id: int, a: int, b: int, verdict: Verdict, note: str | None = None
) -> tuple[JudgementRecord, bool]:
    """Put a judgement in force, in place of the pair's former one; whether that changed anything."""
    take_turn(session)
    low, high = min(a, b), max(a, b)
    former = session.exec(
        select(JudgementRow).where(
            JudgementRow.repo_id == repo_id,
            JudgementRow.a == low,
            JudgementRow.b == high,
            col(JudgementRow.undone_at).is_(None),
        )
    ).first()
    if former is not None and (former.verdict, former.note) == (verdict, note):
        return _record(former), False
    now = datetime.now(UTC)
    if former is not None:
        _end(session, former, now, "replaced")
    row = JudgementRow(repo_id=repo_id, a=low, b=high, verdict=verdict, note=note, judged_at=now)
    session.add(row)
    session.flush()
    return _record(row), True


def undo_judgement(session: Session, judgement_id: int) -> JudgementRecord | None:
    """End a judgement; one that has ended stays as it ended. None if there is none of that id."""
    take_turn(session)
    row = session.get(JudgementRow, judgement_id)
    if row is None:
        return None
    if row.undone_at is None:
        _end(session, row, datetime.now(UTC), "undone")
    return _record(row)


def list_judgements(
    session: Session, repo_id: int, *, below: int | None = None, limit: int = 50, ended: bool = False
) -> list[JudgementRecord]:
    """The newest judgements first, from those with an id below the one given.

    Args:
        ended: whether to list those that were undone or replaced, too.
    """
    query = select(JudgementRow).where(JudgementRow.repo_id == repo_id)
    if below is not None:
        query = query.where(col(JudgementRow.id) < below)
    if not ended:
        query = query.where(col(JudgementRow.undone_at).is_(None))
    return [_record(row) for row in session.exec(query.order_by(col(JudgementRow.id).desc()).limit(limit))]


def judged_pairs(session: Session, repo_id: int, numbers: Iterable[int] | None = None) -> dict[Pair, Verdict]:
    """The pairs judged, of which at least one issue is among these; all of the repository without numbers."""
    wanted = None if numbers is None else set(numbers)
    if wanted is not None and len(wanted) <= NUMBERS_MAX:
        rows = session.connection().execute(_AMONG, {"repo_id": repo_id, "numbers": sorted(wanted)})
    else:
        rows = session.connection().execute(_IN_FORCE, {"repo_id": repo_id})
    return {
        (a, b): cast("Verdict", verdict)
        for a, b, verdict in rows
        if wanted is None or a in wanted or b in wanted
    }


def judgements_among(session: Session, repo_id: int, numbers: Iterable[int]) -> list[JudgementRecord]:
    """The judgements in force of which one issue at least is among these, the newest first."""
    found: dict[int, JudgementRecord] = {}
    wanted = sorted(set(numbers))
    for start in range(0, len(wanted), NUMBERS_MAX):
        part = wanted[start : start + NUMBERS_MAX]
        query = select(JudgementRow).where(
            JudgementRow.repo_id == repo_id,
            col(JudgementRow.undone_at).is_(None),
            or_(col(JudgementRow.a).in_(part), col(JudgementRow.b).in_(part)),
        )
        found |= {record.id: record for record in map(_record, session.exec(query))}
    return [found[key] for key in sorted(found, reverse=True)]


def _end(session: Session, row: JudgementRow, now: datetime, why: UndoneWhy) -> None:
    # At once and not at the next flush: only one row of a pair may be in force.
    session.connection().execute(
        update(JudgementRow).where(col(JudgementRow.id) == row.id).values(undone_at=now, undone_why=why)
    )
    session.refresh(row)


def _record(row: JudgementRow) -> JudgementRecord:
    return JudgementRecord(
        id=cast("int", row.id),
        repo_id=row.repo_id,
        a=row.a,
        b=row.b,
        verdict=cast("Verdict", row.verdict),
        note=row.note,
        judged_at=row.judged_at,
        undone_at=row.undone_at,
        undone_why=cast("UndoneWhy | None", row.undone_why),
    )
