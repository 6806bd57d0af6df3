"""Clusters, their members, and former cluster ids."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.store.engine.connect import delete_with, rows_in_parts, rows_with, sql_rows, upsert
from app.store.tables import CLUSTER, CLUSTER_ALIAS, CLUSTER_MEMBER

PAIRS_PER_CLUSTER = 40
"""Average number of links read per near cluster, as many links may join the same two clusters."""

_CLUSTER, _MEMBER, _ALIAS = CLUSTER.c, CLUSTER_MEMBER.c, CLUSTER_ALIAS.c


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster: its id, its representative issue, and its readable signature."""

    id: str
    canonical: int
    text: str


@dataclass(frozen=True, slots=True)
class FailureTraits:
    """The features of one failure report that clustering uses.

    Attributes:
        signature_id: signature of its root cause.
        family: see `knowledge.cluster.families`.
        rules: version of the extraction rules.
        text: readable signature, or else the masked title.
        frame: where the error was raised, `file.py:function`.
        evidence: score for how much evidence the issue shows a reader.
        closed, gone: the issue is closed or gone on GitHub.
        repeats: issues that people say it duplicates.
    """

    number: int
    signature_id: str | None = None
    family: str | None = None
    rules: str = ""
    text: str = ""
    frame: str | None = None
    evidence: int = 0
    closed: bool = False
    gone: bool = False
    repeats: tuple[int, ...] = ()


_TRAITS = frozenset(item.name for item in fields(FailureTraits))


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A failure report and its cluster."""

    traits: FailureTraits
    cluster_id: str


class ReportLink(NamedTuple):
    """A link from one report to another, with the target's cluster; only similarity links have a score."""

    number: int
    target: int
    kind: str
    score: float | None
    reason: str
    cluster_id: str


_LINKS = """
    SELECT l.number, l.target_number, l.kind, l.score, l.reason, theirs.cluster_id
    FROM link l JOIN cluster_member theirs ON theirs.repo_id = l.repo_id AND theirs.number = l.target_number
    WHERE l.repo_id = :repo_id AND l.target_repo = :repo AND l.number IN (
        SELECT number FROM cluster_member WHERE repo_id = :repo_id AND cluster_id = :cluster_id)
"""
"""The links of a cluster's reports. No join here: SQLite would read all links into the repository first."""


def links_within(session: Session, repo_id: int, repo: str, cluster_id: str) -> list[ReportLink]:
    """Return the links between reports of a cluster, most similar first."""
    query = f"""
        {_LINKS} AND l.kind IN ('similar', 'duplicate') AND theirs.cluster_id = :cluster_id
        ORDER BY coalesce(l.score, 1.0) DESC, l.number, l.target_number
    """
    rows = sql_rows(session, query, repo_id=repo_id, repo=repo, cluster_id=cluster_id)
    return [ReportLink(*row) for row in rows]


def near_clusters(
    session: Session, repo_id: int, repo: str, cluster_id: str, *, limit: int
) -> list[ReportLink]:
    """Return the clusters with reports similar to this one's, each as its most similar pair of reports."""
    query = f"""
        {_LINKS} AND l.kind = 'similar' AND theirs.cluster_id <> :cluster_id
        ORDER BY l.score DESC, l.number, l.target_number LIMIT :pairs
    """
    bound: dict[str, Any] = {"repo_id": repo_id, "repo": repo, "cluster_id": cluster_id}
    found: dict[str, ReportLink] = {}
    for row in sql_rows(session, query, pairs=limit * PAIRS_PER_CLUSTER, **bound):
        found.setdefault(row[-1], ReportLink(*row))
    return list(found.values())[:limit]


def find_members(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, MemberRecord]:
    """Return the records of those of these issues that are in a cluster."""
    columns = (_MEMBER.signature_id, _MEMBER.family, _MEMBER.traits, _MEMBER.cluster_id)
    rows = rows_with(session, repo_id, _MEMBER.number, numbers, *columns)
    found = {}
    for number, signature_id, family, kept, cluster_id in rows:
        # An older version stored more traits.
        traits: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in kept.items()
            if key in _TRAITS
        }
        found[number] = MemberRecord(FailureTraits(number, signature_id, family, **traits), cluster_id)
    return found


def first_members(session: Session, repo_id: int, signature_ids: Iterable[str]) -> dict[str, int]:
    """Return the lowest issue number with each of these root-cause signatures."""
    query = select(_MEMBER.signature_id, func.min(_MEMBER.number)).where(_MEMBER.repo_id == repo_id)
    grouped = query.group_by(_MEMBER.signature_id)
    return dict(rows_in_parts(session, grouped, _MEMBER.signature_id, signature_ids))


def save_members(session: Session, repo_id: int, records: Iterable[MemberRecord]) -> None:
    """Insert or replace these cluster members."""
    rows = []
    for item in records:
        traits = asdict(item.traits)
        keys = {name: traits.pop(name) for name in ("number", "signature_id", "family")}
        rows.append({"repo_id": repo_id, **keys, "cluster_id": item.cluster_id, "traits": traits})
    upsert(session, CLUSTER_MEMBER, rows, keys=("repo_id", "number"))


def remove_members(session: Session, repo_id: int, numbers: Iterable[int]) -> None:
    """Remove these issues from their clusters."""
    delete_with(session, repo_id, _MEMBER.number, numbers)


def replace_clusters(
    session: Session, repo_id: int, removed: Iterable[str], saved: Sequence[ClusterRecord]
) -> None:
    """Delete the clusters with the ids `removed` and insert or replace those `saved`.

    Ids that are saved are removed from the aliases.
    """
    delete_with(session, repo_id, _CLUSTER.id, removed)
    rows = [{"repo_id": repo_id, **asdict(item)} for item in saved]
    upsert(session, CLUSTER, rows, keys=("repo_id", "id"))
    remove_aliases(session, repo_id, [item.id for item in saved])


def count_reports(session: Session, repo_id: int, numbers: Iterable[int]) -> None:
    """Update the denormalized counts, dates and titles of the clusters of these issues."""
    query = """
        UPDATE cluster SET (size, open_count, first_seen, last_seen) = (
            SELECT count(*), count(*) FILTER (WHERE i.state = 'open'), min(i.created_at), max(i.created_at)
            FROM cluster_member m CROSS JOIN issue i
            WHERE m.repo_id = cluster.repo_id AND m.cluster_id = cluster.id
            AND i.repo_id = m.repo_id AND i.number = m.number AND i.gone_at IS NULL
        ), (title, closed_at) = (
            SELECT k.title, CASE WHEN k.state = 'closed' THEN k.closed_at END FROM issue k
            WHERE k.repo_id = cluster.repo_id AND k.number = cluster.canonical
        ) WHERE repo_id = :repo_id AND id IN (
            SELECT cluster_id FROM cluster_member WHERE repo_id = :repo_id AND number IN :numbers)
    """
    sql_rows(session, query, repo_id=repo_id, numbers=sorted(numbers))


def find_aliases(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[str, int]:
    """Return the former cluster ids that resolve through these issues, each with its issue."""
    rows = rows_with(session, repo_id, _ALIAS.number, numbers, _ALIAS.old_id)
    return {old_id: number for number, old_id in rows}


def save_aliases(session: Session, repo_id: int, aliases: Mapping[str, int]) -> None:
    """Save former cluster ids, each with the issue to whose cluster it resolves."""
    rows = [{"repo_id": repo_id, "old_id": key, "number": number} for key, number in sorted(aliases.items())]
    upsert(session, CLUSTER_ALIAS, rows, keys=("repo_id", "old_id"))


def remove_aliases(session: Session, repo_id: int, ids: Iterable[str]) -> None:
    """Delete these former cluster ids."""
    delete_with(session, repo_id, _ALIAS.old_id, ids)


def find_clusters(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, ClusterRecord]:
    """Return clusters by requested id; former ids resolve to current clusters, unknown ids are left out.

    Each record's own `id` is the current one.
    """
    query = """
        SELECT a.old_id, m.cluster_id FROM cluster_alias a
        JOIN cluster_member m ON m.repo_id = a.repo_id AND m.number = a.number
        WHERE a.repo_id = :repo_id AND a.old_id IN :ids
    """
    current = dict(sql_rows(session, query, repo_id=repo_id, ids=list(ids)))
    wanted = {asked: current.get(asked, asked) for asked in ids}
    rows = rows_with(session, repo_id, _CLUSTER.id, wanted.values(), _CLUSTER.canonical, _CLUSTER.text)
    found = {row[0]: ClusterRecord(*row) for row in rows}
    return {asked: found[key] for asked, key in wanted.items() if key in found}


def members_of(session: Session, repo_id: int, cluster_ids: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the issue numbers in each of these current clusters, ascending."""
    found: dict[str, list[int]] = {}
    # Sorted here: for ORDER BY, SQLite would read all members of the repository.
    query = "SELECT cluster_id, number FROM cluster_member WHERE repo_id = :repo_id AND cluster_id IN :ids"
    for cluster_id, number in sql_rows(session, query, repo_id=repo_id, ids=list(cluster_ids)):
        found.setdefault(cluster_id, []).append(number)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def cluster_of(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, str]:
    """Return the cluster id of each of these issues; those that report no failure are left out."""
    query = "SELECT number, cluster_id FROM cluster_member WHERE repo_id = :repo_id AND number IN :numbers"
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(numbers)))
