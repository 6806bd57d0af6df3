"""What each issue is compared by, packed: kept, so that a pair is weighed without reading its texts again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import select
from sqlmodel import Session

from app.store.engine.connect import rows_in_parts, upsert
from app.store.tables import metadata

_TABLE = metadata.tables["pair_view"]


def save_packed_features(
    session: Session, repo_id: int, packed: Mapping[int, bytes], *, version: str
) -> set[int]:
    """Keep these; the numbers of those that are others than were kept, or were made by another version."""
    query = select(_TABLE.c.number, _TABLE.c.version, _TABLE.c.packed).where(_TABLE.c.repo_id == repo_id)
    kept = {row[0]: (row[1], row[2]) for row in rows_in_parts(session, query, _TABLE.c.number, packed)}
    changed = {number for number, item in packed.items() if kept.get(number) != (version, item)}
    rows = [
        {"repo_id": repo_id, "number": number, "version": version, "packed": packed[number]}
        for number in sorted(changed)
    ]
    upsert(session, _TABLE, rows, keys=("repo_id", "number"))
    return changed


def find_packed_features(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, bytes]:
    """The kept features of these issues, packed."""
    query = select(_TABLE.c.number, _TABLE.c.packed).where(_TABLE.c.repo_id == repo_id)
    return dict(rows_in_parts(session, query, _TABLE.c.number, numbers))
