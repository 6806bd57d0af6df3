"""People's word on two issues: kept apart from all that is derived, so that no rebuild touches it.

For each pair at most one judgement is in force. One that is undone or replaced stays as a row of its own,
with when and why it ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import ColumnElement, insert, select, update
from sqlalchemy.orm import Session

from app.store.engine.connect import rows_in_parts, take_turn
from app.store.records import Pair, pair_of
from app.store.tables import JUDGEMENT

Verdict = Literal["same", "different"]
UndoneWhy = Literal["undone", "replaced"]
_TABLE = JUDGEMENT
_IN_FORCE = _TABLE.c.undone_at.is_(None)


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
    low, high = pair_of(a, b)
    is_pair = (_TABLE.c.repo_id == repo_id) & (_TABLE.c.a == low) & (_TABLE.c.b == high)
    former = _find(session, is_pair, _IN_FORCE)
    if former and (former[0].verdict, former[0].note) == (verdict, note):
        return former[0], False
    now = datetime.now(UTC)
    for record in former:
        _end(session, record.id, now, "replaced")
    row = {"repo_id": repo_id, "a": low, "b": high, "verdict": verdict, "note": note, "judged_at": now}
    session.connection().execute(insert(_TABLE).values(row))
    return _find(session, is_pair, _IN_FORCE)[0], True


def undo_judgement(session: Session, judgement_id: int) -> JudgementRecord | None:
    """End a judgement; one that has ended stays as it ended. None if there is none of that id."""
    take_turn(session)
    _end(session, judgement_id, datetime.now(UTC), "undone")
    return next(iter(_find(session, _TABLE.c.id == judgement_id)), None)


def list_judgements(
    session: Session, repo_id: int, *, below: int | None = None, limit: int = 50, ended: bool = False
) -> list[JudgementRecord]:
    """The newest judgements first, from those with an id below the one given.

    Args:
        ended: whether to list those that were undone or replaced, too.
    """
    chosen = [_TABLE.c.repo_id == repo_id]
    chosen += [] if below is None else [_TABLE.c.id < below]
    chosen += [] if ended else [_IN_FORCE]
    return _find(session, *chosen, limit=limit)


def judged_pairs(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[Pair, Verdict]:
    """The verdict in force on each pair of which at least one issue is among these."""
    return {(item.a, item.b): item.verdict for item in judgements_among(session, repo_id, numbers)}


def judgements_among(session: Session, repo_id: int, numbers: Iterable[int]) -> list[JudgementRecord]:
    """The judgements in force of which one issue at least is among these, the newest first."""
    query = select(_TABLE).where(_TABLE.c.repo_id == repo_id, _IN_FORCE)
    asked = set(numbers)
    rows = [row for end in (_TABLE.c.a, _TABLE.c.b) for row in rows_in_parts(session, query, end, asked)]
    found = {row.id: JudgementRecord(*row) for row in rows}
    return [found[key] for key in sorted(found, reverse=True)]


def _find(session: Session, *chosen: ColumnElement[bool], limit: int | None = None) -> list[JudgementRecord]:
    query = select(_TABLE).where(*chosen).order_by(_TABLE.c.id.desc()).limit(limit)
    return [JudgementRecord(*row) for row in session.connection().execute(query)]


def _end(session: Session, judgement_id: int, now: datetime, why: UndoneWhy) -> None:
    is_it = _TABLE.c.id == judgement_id
    session.connection().execute(update(_TABLE).where(is_it, _IN_FORCE).values(undone_at=now, undone_why=why))
