"""Votes on issues, one of each visitor and signal, and the random keys that hide who a visitor is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from secrets import token_bytes

from sqlalchemy import bindparam, case, delete, func
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.store.engine.connect import insert_new, upsert
from app.store.tables import VoteRow, metadata

KEY_BYTES = 32
_ROW = metadata.tables["secret"].c
# Asked with every issue's page, so built once.
_SECRET = sql_select(_ROW.value).where(_ROW.name == bindparam("name"))


def find_secret(session: Session, name: str) -> bytes | None:
    """The key of this name, or None if none was made yet."""
    return session.connection().execute(_SECRET, {"name": name}).scalar()


def make_secret(session: Session, name: str) -> bytes:
    """The key of this name, made now if there is none; two that make it at once get the same."""
    made = token_bytes(KEY_BYTES)
    insert_new(session, metadata.tables["secret"], {"name": name, "value": made}, keys=("name",))
    return find_secret(session, name) or made


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
                col(VoteRow.repo_id) == repo_id,
                col(VoteRow.number) == number,
                col(VoteRow.signal) == signal,
                col(VoteRow.visitor) == visitor,
            )
        )
        return
    row = {
        "repo_id": repo_id,
        "number": number,
        "signal": signal,
        "visitor": visitor,
        "value": value,
        "voted_at": datetime.now(UTC),
    }
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
