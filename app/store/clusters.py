"""Clusters: found by their ids, members by their cluster, a cluster by its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import bindparam, func
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.store.cluster_tables import ClusterAliasRow, ClusterMemberRow, ClusterRow, metadata

KEYS_PER_QUERY = 900
"""Stays below the number of bound values that every SQLite build takes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster: its id, the issue that shows it best, the readable text of its id."""

    id: str
    canonical: int
    text: str


_CLUSTER, _MEMBER = metadata.tables["cluster"].c, metadata.tables["cluster_member"].c
_FELLOW = metadata.tables["cluster_member"].alias("fellow").c
# Asked with every issue, so built once.
_CLUSTER_WITH = (
    sql_select(
        _CLUSTER.id, _CLUSTER.canonical, _CLUSTER.text,
        sql_select(func.count())
        .where(_FELLOW.repo_id == _CLUSTER.repo_id, _FELLOW.cluster_id == _CLUSTER.id)
        .scalar_subquery(),
    )
    .join_from(
        metadata.tables["cluster_member"], metadata.tables["cluster"],
        (_CLUSTER.repo_id == _MEMBER.repo_id) & (_CLUSTER.id == _MEMBER.cluster_id),
    )
    .where(_MEMBER.repo_id == bindparam("repo_id"), _MEMBER.number == bindparam("number"))
)  # fmt: skip


def find_cluster_with(session: Session, repo_id: int, number: int) -> tuple[ClusterRecord, int] | None:
    """The cluster that an issue is in, and how many are; None for what reports no failure."""
    found = session.connection().execute(_CLUSTER_WITH, {"repo_id": repo_id, "number": number}).first()
    return (ClusterRecord(*found[:3]), found[3]) if found is not None else None


def find_clusters(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, ClusterRecord]:
    """The clusters of these ids, by the id asked for; one that once named a cluster finds today's.

    An id that never named one is left out. A record's own `id` is today's.
    """
    current = _aliases(session, repo_id, ids)
    wanted = {asked: current.get(asked, asked) for asked in ids}
    found: dict[str, ClusterRecord] = {}
    for part in parts_of(sorted(set(wanted.values()))):
        query = select(ClusterRow).where(ClusterRow.repo_id == repo_id, col(ClusterRow.id).in_(part))
        found |= {row.id: ClusterRecord(row.id, row.canonical, row.text) for row in session.exec(query)}
    return {asked: found[key] for asked, key in wanted.items() if key in found}


def members_of(session: Session, repo_id: int, cluster_ids: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The numbers of the issues in each of these clusters of today, ascending."""
    found: dict[str, list[int]] = {}
    for part in parts_of(sorted(set(cluster_ids))):
        # Put in order here: to get them in order, SQLite would read all members of the repository.
        query = select(ClusterMemberRow.cluster_id, ClusterMemberRow.number).where(
            ClusterMemberRow.repo_id == repo_id, col(ClusterMemberRow.cluster_id).in_(part)
        )
        for cluster_id, number in session.exec(query):
            found.setdefault(cluster_id, []).append(number)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def cluster_of(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, str]:
    """The id of the cluster that each of these issues is in; what reports no failure is in none."""
    found: dict[int, str] = {}
    for part in parts_of(sorted(set(numbers))):
        query = select(ClusterMemberRow.number, ClusterMemberRow.cluster_id).where(
            ClusterMemberRow.repo_id == repo_id, col(ClusterMemberRow.number).in_(part)
        )
        found |= dict(iter(session.exec(query)))
    return found


def _aliases(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, str]:
    """Today's id of each of these that once named a cluster."""
    found: dict[str, str] = {}
    for part in parts_of(sorted(set(ids))):
        query = (
            select(ClusterAliasRow.old_id, ClusterMemberRow.cluster_id)
            .join(
                ClusterMemberRow,
                (col(ClusterMemberRow.repo_id) == col(ClusterAliasRow.repo_id))
                & (col(ClusterMemberRow.number) == col(ClusterAliasRow.number)),
            )
            .where(ClusterAliasRow.repo_id == repo_id, col(ClusterAliasRow.old_id).in_(part))
        )
        found |= dict(iter(session.exec(query)))
    return found


def parts_of(keys: Sequence[T]) -> Iterator[list[T]]:
    """The keys in parts that one query takes."""
    for start in range(0, len(keys), KEYS_PER_QUERY):
        yield list(keys[start : start + KEYS_PER_QUERY])
