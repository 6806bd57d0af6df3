"""The starter cards that were loaded; they stay when GitHub's own fields arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmodel import Session

from app.store.engine.connect import upsert
from app.store.engine.rows import sql_rows
from app.store.tables import metadata


def save_cards(session: Session, repo_id: int, texts: Mapping[int, str]) -> None:
    """Store cards by issue number, as their files' text."""
    rows = [{"repo_id": repo_id, "number": number, "text": text} for number, text in texts.items()]
    upsert(session, metadata.tables["card"], rows, keys=("repo_id", "number"))


def find_cards(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    """The card texts of these issues; most issues have none."""
    query = "SELECT number, text FROM card WHERE repo_id = :repo_id AND number IN :numbers"
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(numbers)))
