"""The starter cards that were loaded; they stay when GitHub's own fields arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmodel import Session, col, select

from app.store.dialect import upsert
from app.store.tables import CardRow, metadata


def save_cards(session: Session, repo_id: int, texts: Mapping[int, str]) -> None:
    """Store cards by issue number, as their files' text."""
    rows = [{"repo_id": repo_id, "number": number, "text": text} for number, text in texts.items()]
    upsert(session, metadata.tables["card"], rows, keys=("repo_id", "number"))


def find_cards(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    """The card texts of these issues; most issues have none."""
    query = select(CardRow.number, CardRow.text).where(
        CardRow.repo_id == repo_id, col(CardRow.number).in_(list(numbers))
    )
    return dict(session.exec(query).all())
