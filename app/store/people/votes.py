"""Votes on issues and on their remedies, and the random keys that hide who a visitor is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from secrets import token_bytes

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.store.engine.connect import insert_new, rows_in_parts, upsert
from app.store.tables import REMEDY_VOTE, SECRET, VOTE

KEY_BYTES = 32
_VOTE, _REMEDY = VOTE.c, REMEDY_VOTE.c


def find_secret(session: Session, name: str) -> bytes | None:
    """The key of this name, or None if none was made yet."""
    return session.connection().execute(select(SECRET.c.value).where(SECRET.c.name == name)).scalar()


def make_secret(session: Session, name: str) -> bytes:
    """The key of this name, made now if there is none; two that make it at once get the same."""
    made = token_bytes(KEY_BYTES)
    insert_new(session, SECRET, {"name": name, "value": made}, keys=("name",))
    return find_secret(session, name) or made


def save_vote(session: Session, repo_id: int, number: int, signal: str, visitor: str, value: int) -> None:
    """Put a vote in place of the visitor's former one; 0 takes it away."""
    key = {"repo_id": repo_id, "number": number, "signal": signal, "visitor": visitor}
    if value:
        upsert(session, VOTE, [{**key, "value": value, "voted_at": datetime.now(UTC)}], keys=tuple(key))
    else:
        session.connection().execute(delete(VOTE).filter_by(**key))


def count_votes(session: Session, repo_id: int, number: int) -> dict[str, tuple[int, int]]:
    """For each signal that was voted on: how many for it, how many against."""
    counts = (func.count().filter(_VOTE.value == value) for value in (1, -1))
    query = select(_VOTE.signal, *counts).where(_VOTE.repo_id == repo_id, _VOTE.number == number)
    rows = session.connection().execute(query.group_by(_VOTE.signal))
    return {signal: (for_it, against) for signal, for_it, against in rows}


def votes_by(session: Session, repo_id: int, number: int, visitor: str) -> dict[str, int]:
    """What a visitor voted on an issue."""
    query = select(_VOTE.signal, _VOTE.value).filter_by(repo_id=repo_id, number=number, visitor=visitor)
    return dict(iter(session.connection().execute(query)))


def sum_votes(session: Session, repo_id: int, numbers: Sequence[int], signal: str) -> dict[int, int]:
    """Votes for less votes against, by issue; those without votes are left out."""
    query = select(_VOTE.number, func.sum(_VOTE.value)).group_by(_VOTE.number)
    rows = rows_in_parts(session, query.filter_by(repo_id=repo_id, signal=signal), _VOTE.number, numbers)
    return {number: int(value) for number, value in rows}


@dataclass(frozen=True, slots=True)
class RemedyBallot:
    """A visitor's vote on a remedy; `origin` is shared by all visitors of one network address."""

    number: int
    remedy: str
    visitor: str
    origin: str
    value: int


def save_remedy_vote(session: Session, repo_id: int, ballot: RemedyBallot) -> None:
    """Put a vote in place of the visitor's former one on this remedy; 0 takes it away."""
    row = {"repo_id": repo_id, **asdict(ballot)}
    keys = ("repo_id", "number", "remedy", "visitor")
    if ballot.value:
        upsert(session, REMEDY_VOTE, [{**row, "voted_at": datetime.now(UTC)}], keys=keys)
    else:
        session.connection().execute(delete(REMEDY_VOTE).filter_by(**{key: row[key] for key in keys}))


def remedy_ballots(session: Session, repo_id: int, numbers: Sequence[int]) -> list[RemedyBallot]:
    """All votes on the remedies of these issues."""
    query = select(_REMEDY.number, _REMEDY.remedy, _REMEDY.visitor, _REMEDY.origin, _REMEDY.value)
    rows = rows_in_parts(session, query.where(_REMEDY.repo_id == repo_id), _REMEDY.number, numbers)
    return [RemedyBallot(*row) for row in rows]
