"""Each failure's place among the clusters, and the writing of clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from app.store.cluster_tables import ClusterAliasRow, ClusterMemberRow, ClusterRow, metadata
from app.store.clusters import ClusterRecord, parts_of
from app.store.dialect import upsert


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A failure: the cluster it is in, the signature of its root cause, what clusters are told apart by."""

    number: int
    cluster_id: str
    signature_id: str | None
    traits: Mapping[str, Any]


def find_members(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, MemberRecord]:
    """Those of these issues that are in a cluster."""
    found: dict[int, MemberRecord] = {}
    for part in parts_of(sorted(set(numbers))):
        query = select(
            ClusterMemberRow.number, ClusterMemberRow.cluster_id, ClusterMemberRow.signature_id,
            ClusterMemberRow.traits,
        ).where(ClusterMemberRow.repo_id == repo_id, col(ClusterMemberRow.number).in_(part))  # fmt: skip
        found |= {row[0]: MemberRecord(*row) for row in session.exec(query)}
    return found


def first_members(session: Session, repo_id: int, signature_ids: Iterable[str]) -> dict[str, int]:
    """The lowest number of the members with each of these signatures."""
    found: dict[str, int] = {}
    for part in parts_of(sorted(set(signature_ids))):
        query = (
            select(ClusterMemberRow.signature_id, func.min(ClusterMemberRow.number))
            .where(ClusterMemberRow.repo_id == repo_id, col(ClusterMemberRow.signature_id).in_(part))
            .group_by(col(ClusterMemberRow.signature_id))
        )
        found |= {key: number for key, number in session.exec(query) if key is not None}
    return found


def save_members(session: Session, repo_id: int, records: Iterable[MemberRecord]) -> None:
    """Keep these members, in place of what was known of them."""
    rows = [
        {
            "repo_id": repo_id, "number": item.number, "cluster_id": item.cluster_id,
            "signature_id": item.signature_id, "traits": dict(item.traits),
        }
        for item in records
    ]  # fmt: skip
    upsert(session, metadata.tables["cluster_member"], rows, keys=("repo_id", "number"))


def remove_members(session: Session, repo_id: int, numbers: Collection[int]) -> None:
    """Take these issues out of all clusters."""
    for part in parts_of(sorted(numbers)):
        session.connection().execute(
            delete(ClusterMemberRow).where(
                col(ClusterMemberRow.repo_id) == repo_id, col(ClusterMemberRow.number).in_(part)
            )
        )


def replace_clusters(
    session: Session, repo_id: int, removed: Collection[str], saved: Sequence[ClusterRecord]
) -> None:
    """Remove the clusters of these ids and keep others, in place of what was known of them.

    What is saved is no alias any more.
    """
    for part in parts_of(sorted(removed)):
        session.connection().execute(
            delete(ClusterRow).where(col(ClusterRow.repo_id) == repo_id, col(ClusterRow.id).in_(part))
        )
    rows = [
        {"repo_id": repo_id, "id": item.id, "canonical": item.canonical, "text": item.text} for item in saved
    ]
    upsert(session, metadata.tables["cluster"], rows, keys=("repo_id", "id"))
    remove_aliases(session, repo_id, [item.id for item in saved])


def find_aliases(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[str, int]:
    """The ids that once named a cluster about one of these issues, each with its issue."""
    found: dict[str, int] = {}
    for part in parts_of(sorted(set(numbers))):
        query = select(ClusterAliasRow.old_id, ClusterAliasRow.number).where(
            ClusterAliasRow.repo_id == repo_id, col(ClusterAliasRow.number).in_(part)
        )
        found |= dict(iter(session.exec(query)))
    return found


def save_aliases(session: Session, repo_id: int, aliases: Mapping[str, int]) -> None:
    """Keep ids that once named a cluster, each with the issue whose cluster it leads to."""
    rows = [{"repo_id": repo_id, "old_id": key, "number": number} for key, number in sorted(aliases.items())]
    upsert(session, metadata.tables["cluster_alias"], rows, keys=("repo_id", "old_id"))


def remove_aliases(session: Session, repo_id: int, ids: Collection[str]) -> None:
    """Forget that these ids once named a cluster."""
    for part in parts_of(sorted(ids)):
        session.connection().execute(
            delete(ClusterAliasRow).where(
                col(ClusterAliasRow.repo_id) == repo_id, col(ClusterAliasRow.old_id).in_(part)
            )
        )
