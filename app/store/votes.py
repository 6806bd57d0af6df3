"""Votes on issues: one of each visitor and signal. A visitor is a keyed hash that leads back to nobody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import case, delete, func
from sqlmodel import Session, col, select

from app.store.dialect import upsert
from app.store.tables import VoteRow, metadata


def save_vote(session: Session, repo_id: int, number: int, signal: str, visitor: str, value: int) -> None:
    """Put a vote in place of the visitor's former one; 0 takes it away."""
    if value == 0:
        session.connection().execute(
            delete(VoteRow).where(
                col(VoteRow.repo_id) == repo_id, col(VoteRow.number) == number,
                col(VoteRow.signal) == signal, col(VoteRow.visitor) == visitor,
            )
        )  # fmt: skip
        return
    row = {
        "repo_id": repo_id, "number": number, "signal": signal, "visitor": visitor, "value": value,
        "voted_at": datetime.now(UTC),
    }  # fmt: skip
    upsert(session, metadata.tables["vote"], [row], keys=("repo_id", "number", "signal", "visitor"))


def count_votes(session: Session, repo_id: int, number: int) -> dict[str, tuple[int, int]]:
    """For each signal that was voted on: how many for it, how many against."""
    up, down = (func.sum(case((col(VoteRow.value) == value, 1), else_=0)) for value in (1, -1))
    query = (
        select(VoteRow.signal, up, down)
        .where(VoteRow.repo_id == repo_id, VoteRow.number == number)
        .group_by(col(VoteRow.signal))
    )
    return {signal: (int(for_it), int(against)) for signal, for_it, against in session.exec(query)}


def votes_by(session: Session, repo_id: int, number: int, visitor: str) -> dict[str, int]:
    """What a visitor voted on an issue."""
    query = select(VoteRow.signal, VoteRow.value).where(
        VoteRow.repo_id == repo_id, VoteRow.number == number, VoteRow.visitor == visitor
    )
    return dict(session.exec(query).all())


def sum_votes(session: Session, repo_id: int, numbers: Sequence[int], signal: str) -> dict[int, int]:
    """Votes for less votes against, by issue; those without votes are left out."""
    query = (
        select(VoteRow.number, func.sum(VoteRow.value))
        .where(VoteRow.repo_id == repo_id, col(VoteRow.number).in_(list(numbers)), VoteRow.signal == signal)
        .group_by(col(VoteRow.number))
    )
    return {number: int(value) for number, value in session.exec(query)}
