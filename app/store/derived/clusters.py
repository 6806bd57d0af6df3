"""Clusters, the failures in them, and the ids that once named one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.store.engine.connect import delete_with, rows_in_parts, rows_with, sql_rows, upsert
from app.store.tables import CLUSTER, CLUSTER_ALIAS, CLUSTER_MEMBER

PAIRS_PER_CLUSTER = 40
"""Two clusters may be linked by many pairs; only so many, on average, are looked through."""

_CLUSTER, _MEMBER, _ALIAS = CLUSTER.c, CLUSTER_MEMBER.c, CLUSTER_ALIAS.c


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster: its id, the issue that shows it best, the readable text of its id."""

    id: str
    canonical: int
    text: str


@dataclass(frozen=True, slots=True)
class FailureTraits:
    """What clusters are made by: read from the texts of one issue that reports a failure.

    Attributes:
        signature_id: of its root cause.
        family: see `knowledge.cluster.families`.
        rules: the version of the rules that read it.
        text: the readable text of its signature, else its masked title.
        message: the masked words of its error message; empty if it has none.
        frame: where its error was raised, `file.py:function`.
        generic: its error is one that many unlike failures share; `late`: a later call reported it.
        names_test: its title names a test and not a failure.
        in_error: ids of the conditions and families that the error line itself names.
        evidence: how much it shows a reader, in points.
        closed, gone: as GitHub has it.
        repeats: the issues that it is a duplicate of, as people say.
    """

    number: int
    signature_id: str | None = None
    family: str | None = None
    rules: str = ""
    text: str = ""
    message: str = ""
    frame: str | None = None
    generic: bool = False
    late: bool = False
    names_test: bool = False
    in_error: tuple[str, ...] = ()
    evidence: int = 0
    closed: bool = False
    gone: bool = False
    repeats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A failure and the cluster it is in."""

    traits: FailureTraits
    cluster_id: str


class ReportLink(NamedTuple):
    """A link from one report to another, and the target's cluster; likeness has a score."""

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
"""The links of a cluster's reports. Not joined: SQLite would begin with all links into the repository."""


def links_within(session: Session, repo_id: int, repo: str, cluster_id: str) -> list[ReportLink]:
    """The links between two reports of a cluster, the likest first."""
    query = f"""
        {_LINKS} AND l.kind IN ('similar', 'duplicate') AND theirs.cluster_id = :cluster_id
        ORDER BY coalesce(l.score, 1.0) DESC, l.number, l.target_number
    """
    rows = sql_rows(session, query, repo_id=repo_id, repo=repo, cluster_id=cluster_id)
    return [ReportLink(*row) for row in rows]


def near_clusters(
    session: Session, repo_id: int, repo: str, cluster_id: str, *, limit: int
) -> list[ReportLink]:
    """The clusters whose reports are linked as alike with this one's, each by its likest pair."""
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
    """Those of these issues that are in a cluster."""
    columns = (_MEMBER.signature_id, _MEMBER.family, _MEMBER.traits, _MEMBER.cluster_id)
    rows = rows_with(session, repo_id, _MEMBER.number, numbers, *columns)
    found = {}
    for number, signature_id, family, kept, cluster_id in rows:
        traits: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}
        found[number] = MemberRecord(FailureTraits(number, signature_id, family, **traits), cluster_id)
    return found


def first_members(session: Session, repo_id: int, signature_ids: Iterable[str]) -> dict[str, int]:
    """The lowest number of the members with each of these signatures."""
    query = select(_MEMBER.signature_id, func.min(_MEMBER.number)).where(_MEMBER.repo_id == repo_id)
    grouped = query.group_by(_MEMBER.signature_id)
    return dict(rows_in_parts(session, grouped, _MEMBER.signature_id, signature_ids))


def save_members(session: Session, repo_id: int, records: Iterable[MemberRecord]) -> None:
    """Keep these members, in place of what was known of them."""
    rows = []
    for item in records:
        traits = asdict(item.traits)
        keys = {name: traits.pop(name) for name in ("number", "signature_id", "family")}
        rows.append({"repo_id": repo_id, **keys, "cluster_id": item.cluster_id, "traits": traits})
    upsert(session, CLUSTER_MEMBER, rows, keys=("repo_id", "number"))


def remove_members(session: Session, repo_id: int, numbers: Iterable[int]) -> None:
    """Take these issues out of all clusters."""
    delete_with(session, repo_id, _MEMBER.number, numbers)


def replace_clusters(
    session: Session, repo_id: int, removed: Iterable[str], saved: Sequence[ClusterRecord]
) -> None:
    """Remove the clusters of these ids and keep others, in place of what was known of them.

    What is saved is no alias any more.
    """
    delete_with(session, repo_id, _CLUSTER.id, removed)
    rows = [{"repo_id": repo_id, **asdict(item)} for item in saved]
    upsert(session, CLUSTER, rows, keys=("repo_id", "id"))
    remove_aliases(session, repo_id, [item.id for item in saved])


def count_reports(session: Session, repo_id: int, numbers: Iterable[int]) -> None:
    """Write anew what the clusters of these issues repeat of their issues."""
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
    """The ids that once named a cluster about one of these issues, each with its issue."""
    rows = rows_with(session, repo_id, _ALIAS.number, numbers, _ALIAS.old_id)
    return {old_id: number for number, old_id in rows}


def save_aliases(session: Session, repo_id: int, aliases: Mapping[str, int]) -> None:
    """Keep ids that once named a cluster, each with the issue whose cluster it leads to."""
    rows = [{"repo_id": repo_id, "old_id": key, "number": number} for key, number in sorted(aliases.items())]
    upsert(session, CLUSTER_ALIAS, rows, keys=("repo_id", "old_id"))


def remove_aliases(session: Session, repo_id: int, ids: Iterable[str]) -> None:
    """Forget that these ids once named a cluster."""
    delete_with(session, repo_id, _ALIAS.old_id, ids)


def find_cluster_with(session: Session, repo_id: int, number: int) -> tuple[ClusterRecord, int] | None:
    """The cluster that an issue is in, and how many are; None for what reports no failure."""
    query = """
        SELECT c.id, c.canonical, c.text,
        (SELECT count(*) FROM cluster_member f WHERE f.repo_id = c.repo_id AND f.cluster_id = c.id)
        FROM cluster_member m JOIN cluster c ON c.repo_id = m.repo_id AND c.id = m.cluster_id
        WHERE m.repo_id = :repo_id AND m.number = :number
    """
    found = sql_rows(session, query, repo_id=repo_id, number=number)
    return (ClusterRecord(*found[0][:3]), found[0][3]) if found else None


def find_clusters(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, ClusterRecord]:
    """The clusters of these ids, by the id asked for; one that once named a cluster finds today's.

    An id that never named one is left out. A record's own `id` is today's.
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
    """The numbers of the issues in each of these clusters of today, ascending."""
    found: dict[str, list[int]] = {}
    # Put in order here: to get them in order, SQLite would read all members of the repository.
    query = "SELECT cluster_id, number FROM cluster_member WHERE repo_id = :repo_id AND cluster_id IN :ids"
    for cluster_id, number in sql_rows(session, query, repo_id=repo_id, ids=list(cluster_ids)):
        found.setdefault(cluster_id, []).append(number)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def cluster_of(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, str]:
    """The id of the cluster that each of these issues is in; what reports no failure is in none."""
    query = "SELECT number, cluster_id FROM cluster_member WHERE repo_id = :repo_id AND number IN :numbers"
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(numbers)))


def clusters_raised_at(session: Session, repo_id: int, numbers: Iterable[int], frame: str) -> list[str]:
    """The ids of the clusters that hold those of these issues whose error was raised in this frame."""
    query = """
        SELECT cluster_id FROM cluster_member
        WHERE repo_id = :repo_id AND number IN :numbers AND traits ->> 'frame' = :frame
    """
    rows = sql_rows(session, query, repo_id=repo_id, numbers=list(numbers), frame=frame)
    return sorted({key for (key,) in rows})
