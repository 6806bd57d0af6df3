"""Releases and the pull requests that their notes name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import delete
from sqlmodel import Session, col, select

from app.store.engine.connect import take_turn, upsert
from app.store.engine.rows import sql_rows
from app.store.records import ReleaseRecord
from app.store.tables import ReleasePullRow, ReleaseRow, metadata


def save_releases(session: Session, repo_id: int, records: Iterable[ReleaseRecord]) -> None:
    """Store releases and which pull requests their notes name."""
    take_turn(session)
    latest = {record.tag: record for record in records}
    rows = [
        {
            "repo_id": repo_id,
            "tag": record.tag,
            "name": record.name,
            "notes": record.notes,
            "is_prerelease": record.is_prerelease,
            "published_at": record.published_at,
            "raw": dict(record.raw) if record.raw is not None else None,
        }
        for record in latest.values()
    ]
    upsert(session, metadata.tables["release"], rows, keys=("repo_id", "tag"))
    session.connection().execute(
        delete(ReleasePullRow).where(
            col(ReleasePullRow.repo_id) == repo_id, col(ReleasePullRow.tag).in_(list(latest))
        )
    )
    named = [
        {"repo_id": repo_id, "tag": record.tag, "number": number}
        for record in latest.values()
        for number in dict.fromkeys(record.pulls)
    ]
    upsert(session, metadata.tables["release_pull"], named, keys=("repo_id", "tag", "number"))


def tags_of(session: Session, repo_id: int) -> set[str]:
    """The tags of all stored releases."""
    return set(session.exec(select(ReleaseRow.tag).where(ReleaseRow.repo_id == repo_id)))


def first_releases_of(session: Session, repo_id: int, pulls: Sequence[int]) -> dict[int, str]:
    """Tag of the first full release, by date, whose notes name each pull request."""
    query = """
        SELECT named.number, release.tag FROM release_pull AS named
        JOIN release ON release.repo_id = named.repo_id AND release.tag = named.tag
        WHERE named.repo_id = :repo_id AND named.number IN :numbers AND NOT release.is_prerelease
        ORDER BY release.published_at DESC NULLS FIRST
    """
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(pulls)))


def newest_release(session: Session, repo_id: int) -> str | None:
    """Tag of the newest full release, or None."""
    query = (
        select(ReleaseRow.tag)
        .where(ReleaseRow.repo_id == repo_id, col(ReleaseRow.is_prerelease).is_(False))
        .order_by(col(ReleaseRow.published_at).desc().nulls_last())
        .limit(1)
    )
    return session.exec(query).first()
