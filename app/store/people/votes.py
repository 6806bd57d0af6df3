"""Votes on issues, one of each visitor and signal, and the random keys that hide who a visitor is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from secrets import token_bytes

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from app.store.engine.connect import insert_new, upsert
from app.store.engine.rows import sql_rows
from app.store.tables import SecretRow, VoteRow, metadata

KEY_BYTES = 32


def find_secret(session: Session, name: str) -> bytes | None:
    """The key of this name, or None if none was made yet."""
    query = select(SecretRow.value).where(SecretRow.name == name)
    return session.exec(query).first()


def make_secret(session: Session, name: str) -> bytes:
    """The key of this name, made now if there is none; two that make it at once get the same."""
    made = token_bytes(KEY_BYTES)
    insert_new(session, metadata.tables["secret"], {"name": name, "value": made}, keys=("name",))
    return find_secret(session, name) or made


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
    query = """
        SELECT signal, sum(CASE value WHEN 1 THEN 1 ELSE 0 END), sum(CASE value WHEN -1 THEN 1 ELSE 0 END)
        FROM vote WHERE repo_id = :repo_id AND number = :number GROUP BY signal
    """
    rows = sql_rows(session, query, repo_id=repo_id, number=number)
    return {signal: (int(for_it), int(against)) for signal, for_it, against in rows}


def votes_by(session: Session, repo_id: int, number: int, visitor: str) -> dict[str, int]:
    """What a visitor voted on an issue."""
    query = """
        SELECT signal, value FROM vote
        WHERE repo_id = :repo_id AND number = :number AND visitor = :visitor
    """
    return dict(sql_rows(session, query, repo_id=repo_id, number=number, visitor=visitor))


def sum_votes(session: Session, repo_id: int, numbers: Sequence[int], signal: str) -> dict[int, int]:
    """Votes for less votes against, by issue; those without votes are left out."""
    query = (
        select(VoteRow.number, func.sum(VoteRow.value))
        .where(VoteRow.repo_id == repo_id, col(VoteRow.number).in_(list(numbers)), VoteRow.signal == signal)
        .group_by(col(VoteRow.number))
    )
    return {number: int(value) for number, value in session.exec(query)}
