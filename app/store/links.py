"""Links that GitHub itself tells, apart from those that reading an issue's text finds."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete
from sqlmodel import Session, col

from app.store.dialect import take_turn, upsert
from app.store.records import LinkRecord
from app.store.tables import LinkRow, metadata


def save_links(
    session: Session, repo_id: int, number: int, links: Iterable[LinkRecord], *, kind: str
) -> None:
    """Replace the links of one kind that a stored issue has; reading the issue again leaves them."""
    take_turn(session)
    session.connection().execute(
        delete(LinkRow).where(
            col(LinkRow.repo_id) == repo_id, col(LinkRow.number) == number, col(LinkRow.kind) == kind
        )
    )
    rows = [
        {
            "repo_id": repo_id, "number": number, "target_repo": link.target_repo,
            "target_number": link.target_number, "kind": kind, "score": link.score,
            "channel": link.channel, "reason": link.reason,
        }
        for link in links
    ]  # fmt: skip
    keys = ("repo_id", "number", "target_repo", "target_number", "kind")
    upsert(session, metadata.tables["link"], rows, keys=keys)
