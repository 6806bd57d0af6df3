"""What each issue is compared by, packed: kept, so that a pair is weighed without reading its texts again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam
from sqlmodel import Session, col, select

from app.store.engine.connect import upsert
from app.store.tables import PairViewRow, metadata

KEYS_PER_QUERY = 900
"""Stays below the number of bound values that every SQLite build takes."""

# Asked for every issue that is linked, so built once.
_VIEWS = select(PairViewRow.number, PairViewRow.version, PairViewRow.packed).where(
    col(PairViewRow.repo_id) == bindparam("repo_id"),
    col(PairViewRow.number).in_(bindparam("numbers", expanding=True)),
)


def save_pair_views(
    session: Session, repo_id: int, packed: Mapping[int, bytes], *, version: str
) -> list[int]:
    """Keep these views; the numbers whose view is another than was kept, or was made by another version."""
    kept = _find(session, repo_id, list(packed))
    changed = sorted(number for number, view in packed.items() if kept.get(number) != (version, view))
    rows = [
        {"repo_id": repo_id, "number": number, "version": version, "packed": packed[number]}
        for number in changed
    ]
    upsert(session, metadata.tables["pair_view"], rows, keys=("repo_id", "number"))
    return changed


def find_pair_views(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, bytes]:
    """The kept views of these issues, packed."""
    return {number: packed for number, (_, packed) in _find(session, repo_id, numbers).items()}


def _find(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, tuple[str, bytes]]:
    found: dict[int, tuple[str, bytes]] = {}
    for start in range(0, len(numbers), KEYS_PER_QUERY):
        asked = {"repo_id": repo_id, "numbers": list(numbers[start : start + KEYS_PER_QUERY])}
        rows = session.connection().execute(_VIEWS, asked)
        found |= {number: (version, packed) for number, version, packed in rows}
    return found
