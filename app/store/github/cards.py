"""The starter cards that were loaded; they stay when GitHub's own fields arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, select
from sqlmodel import Session

from app.store.engine.connect import upsert
from app.store.tables import metadata

_CARD = metadata.tables["card"].c
# Asked with every page, so built once.
_CARDS = select(_CARD.number, _CARD.text).where(
    _CARD.repo_id == bindparam("repo_id"), _CARD.number.in_(bindparam("numbers", expanding=True))
)


def save_cards(session: Session, repo_id: int, texts: Mapping[int, str]) -> None:
    """Store cards by issue number, as their files' text."""
    rows = [{"repo_id": repo_id, "number": number, "text": text} for number, text in texts.items()]
    upsert(session, metadata.tables["card"], rows, keys=("repo_id", "number"))


def find_cards(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    """The card texts of these issues; most issues have none."""
    rows = session.connection().execute(_CARDS, {"repo_id": repo_id, "numbers": list(numbers)})
    return {number: text for number, text in rows}  # noqa: C416 - a row is no pair to mypy
