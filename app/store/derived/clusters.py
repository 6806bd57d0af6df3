"""What ties the reports of a cluster together, and what is alike but stands in another cluster.

Each failure's place among the clusters, and the writing of clusters.

Clusters: found by their ids, members by their cluster, a cluster by its members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, bindparam, delete, func
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.store.engine.connect import upsert
from app.store.tables import ClusterAliasRow, ClusterMemberRow, ClusterRow, metadata

TYING = ("similar", "duplicate")
PAIRS_PER_CLUSTER = 40
"""Two clusters may be linked by many pairs; only so many, on average, are looked through."""

_LINK = metadata.tables["link"].c
_MEMBER = metadata.tables["cluster_member"].c
_THEIRS = metadata.tables["cluster_member"].alias("theirs")


class Tie(NamedTuple):
    """A link from one report to another; likeness has a score."""

    number: int
    target: int
    kind: str
    score: float | None
    reason: str


class NearTie(NamedTuple):
    """The likest pair between a cluster and another one."""

    number: int
    target: int
    cluster_id: str
    score: float
    reason: str


def ties_within(session: Session, repo_id: int, repo: str, cluster_id: str) -> list[Tie]:
    """The links between two reports of a cluster, the likest first."""
    query = (
        _links_of(repo_id, repo, cluster_id, TYING)
        .where(_THEIRS.c.cluster_id == cluster_id)
        .order_by(func.coalesce(_LINK.score, 1.0).desc(), _LINK.number, _LINK.target_number)
    )
    return [Tie(*row[:-1]) for row in session.connection().execute(query)]


def near_clusters(session: Session, repo_id: int, repo: str, cluster_id: str, *, limit: int) -> list[NearTie]:
    """The clusters whose reports are linked as alike with this one's, each by its likest pair."""
    query = (
        _links_of(repo_id, repo, cluster_id, TYING[:1])
        .where(_THEIRS.c.cluster_id != cluster_id)
        .order_by(_LINK.score.desc(), _LINK.number, _LINK.target_number)
        .limit(limit * PAIRS_PER_CLUSTER)
    )
    found: dict[str, NearTie] = {}
    for number, target, _, score, reason, theirs in session.connection().execute(query):
        found.setdefault(theirs, NearTie(number, target, theirs, score, reason))
    return list(found.values())[:limit]


def _links_of(repo_id: int, repo: str, cluster_id: str, kinds: Sequence[str]) -> Select[Any]:
    # Not joined: SQLite would then begin with all links that point into the repository.
    ours = sql_select(_MEMBER.number).where(_MEMBER.repo_id == repo_id, _MEMBER.cluster_id == cluster_id)
    return (
        sql_select(
            _LINK.number, _LINK.target_number, _LINK.kind, _LINK.score, _LINK.reason, _THEIRS.c.cluster_id
        )
        .join_from(
            metadata.tables["link"],
            _THEIRS,
            (_THEIRS.c.repo_id == _LINK.repo_id) & (_THEIRS.c.number == _LINK.target_number),
        )
        .where(
            _LINK.repo_id == repo_id,
            _LINK.number.in_(ours),
            _LINK.target_repo == repo,
            _LINK.kind.in_(kinds),
        )
    )


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
            ClusterMemberRow.number,
            ClusterMemberRow.cluster_id,
            ClusterMemberRow.signature_id,
            ClusterMemberRow.traits,
        ).where(ClusterMemberRow.repo_id == repo_id, col(ClusterMemberRow.number).in_(part))
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
            "repo_id": repo_id,
            "number": item.number,
            "cluster_id": item.cluster_id,
            "signature_id": item.signature_id,
            "traits": dict(item.traits),
        }
        for item in records
    ]
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


KEYS_PER_QUERY = 900
"""Stays below the number of bound values that every SQLite build takes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster: its id, the issue that shows it best, the readable text of its id."""

    id: str
    canonical: int
    text: str


_CLUSTER, _MEMBER_CLUSTERS = metadata.tables["cluster"].c, metadata.tables["cluster_member"].c
_FELLOW = metadata.tables["cluster_member"].alias("fellow").c
# Asked with every issue, so built once.
_CLUSTER_WITH = (
    sql_select(
        _CLUSTER.id,
        _CLUSTER.canonical,
        _CLUSTER.text,
        sql_select(func.count())
        .where(_FELLOW.repo_id == _CLUSTER.repo_id, _FELLOW.cluster_id == _CLUSTER.id)
        .scalar_subquery(),
    )
    .join_from(
        metadata.tables["cluster_member"],
        metadata.tables["cluster"],
        (_CLUSTER.repo_id == _MEMBER_CLUSTERS.repo_id) & (_CLUSTER.id == _MEMBER_CLUSTERS.cluster_id),
    )
    .where(_MEMBER_CLUSTERS.repo_id == bindparam("repo_id"), _MEMBER_CLUSTERS.number == bindparam("number"))
)


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
