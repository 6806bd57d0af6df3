"""Votes on issues: one of each visitor and signal. A visitor is a keyed hash that leads back to nobody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import bindparam, case, delete, func
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.store.dialect import upsert
from app.store.tables import VoteRow, metadata

_VOTE = metadata.tables["vote"].c
_OF_ISSUE = (_VOTE.repo_id == bindparam("repo_id"), _VOTE.number == bindparam("number"))
# Asked with every issue, so built once.
_COUNTS = (
    sql_select(_VOTE.signal, *(func.sum(case((_VOTE.value == value, 1), else_=0)) for value in (1, -1)))
    .where(*_OF_ISSUE)
    .group_by(_VOTE.signal)
)
_OWN = sql_select(_VOTE.signal, _VOTE.value).where(*_OF_ISSUE, _VOTE.visitor == bindparam("visitor"))


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
    rows = session.connection().execute(_COUNTS, {"repo_id": repo_id, "number": number})
    return {signal: (int(for_it), int(against)) for signal, for_it, against in rows}


def votes_by(session: Session, repo_id: int, number: int, visitor: str) -> dict[str, int]:
    """What a visitor voted on an issue."""
    asked = {"repo_id": repo_id, "number": number, "visitor": visitor}
    rows = session.connection().execute(_OWN, asked)
    return {signal: value for signal, value in rows}  # noqa: C416 - a row is no pair to mypy


def sum_votes(session: Session, repo_id: int, numbers: Sequence[int], signal: str) -> dict[int, int]:
    """Votes for less votes against, by issue; those without votes are left out."""
    query = (
        select(VoteRow.number, func.sum(VoteRow.value))
        .where(VoteRow.repo_id == repo_id, col(VoteRow.number).in_(list(numbers)), VoteRow.signal == signal)
        .group_by(col(VoteRow.number))
    )
    return {number: int(value) for number, value in session.exec(query)}
