"""Releases and the pull requests that their notes name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.extract.versions import ordered, sort_key
from app.store.engine.connect import rows_in_parts, take_turn, upsert
from app.store.records import ReleaseRecord
from app.store.tables import FIX_CONTAINMENT, RELEASE, RELEASE_PULL

_RELEASE, _NAMED, _FOUND = RELEASE.c, RELEASE_PULL.c, FIX_CONTAINMENT.c


def save_releases(session: Session, repo_id: int, records: Iterable[ReleaseRecord]) -> None:
    """Store releases and which pull requests their notes name."""
    take_turn(session)
    latest = {record.tag: record for record in records}
    rows = [{"repo_id": repo_id, **asdict(record)} for record in latest.values()]
    for row in rows:
        del row["pulls"]
    upsert(session, RELEASE, rows, keys=("repo_id", "tag"))
    is_saved = (_NAMED.repo_id == repo_id) & _NAMED.tag.in_(list(latest))
    session.connection().execute(delete(RELEASE_PULL).where(is_saved))
    named = [
        {"repo_id": repo_id, "tag": record.tag, "number": number}
        for record in latest.values()
        for number in dict.fromkeys(record.pulls)
    ]
    upsert(session, RELEASE_PULL, named, keys=("repo_id", "tag", "number"))


def tags_of(session: Session, repo_id: int) -> set[str]:
    """The tags of all stored releases."""
    query = select(_RELEASE.tag).where(_RELEASE.repo_id == repo_id)
    return set(session.connection().execute(query).scalars())


def first_releases_of(session: Session, repo_id: int, pulls: Sequence[int]) -> dict[int, str]:
    """Tag of the first full release known to hold each pull request, by notes, table or comparison."""
    named = select(_NAMED.number, _NAMED.tag).join_from(RELEASE_PULL, RELEASE)
    named = named.where(_NAMED.repo_id == repo_id, _RELEASE.is_prerelease.is_(False))
    found = select(_FOUND.number, _FOUND.tag).where(_FOUND.repo_id == repo_id, _FOUND.contained)
    rows: list[tuple[int, str]] = [
        *rows_in_parts(session, named, _NAMED.number, pulls),
        *rows_in_parts(session, found, _FOUND.number, pulls),
    ]
    return dict(sorted(rows, key=lambda row: (ordered(row[1]) is None, sort_key(row[1])), reverse=True))


def newest_release(session: Session, repo_id: int) -> str | None:
    """Tag of the newest full release, or None."""
    query = (
        select(_RELEASE.tag)
        .where(_RELEASE.repo_id == repo_id, _RELEASE.is_prerelease.is_(False))
        .order_by(_RELEASE.published_at.desc().nulls_last())
        .limit(1)
    )
    return session.connection().execute(query).scalar()
