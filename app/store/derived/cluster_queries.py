"""Cluster statistics: report counts, first and last dates, recent growth, hardware and versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.derived.weeks import LISTED, opened_span
from app.store.engine.connect import sql_rows
from app.store.memo import kept_until_written
from app.store.tables import COMMENT

Sort = Literal["size", "recent", "growing"]
RECENT = timedelta(days=28)
"""The recent period, ending with the newest stored report, so that it is meaningful without a recent sync."""

_COMMENT = COMMENT.c
_MEMBERS = "FROM cluster_member m JOIN issue i ON i.repo_id = m.repo_id AND i.number = m.number"
_RECENT_COUNT = "count(*) FILTER (WHERE i.created_at > :recent) AS recent"
_GROWTH = f"""
    SELECT m.cluster_id, {_RECENT_COUNT},
    count(*) FILTER (WHERE i.created_at > :before AND NOT i.created_at > :recent) AS earlier
    FROM issue i CROSS JOIN cluster_member m
    WHERE {LISTED} AND i.created_at > :before AND m.repo_id = i.repo_id AND m.number = i.number
    GROUP BY m.cluster_id
"""
_ORDERS = {
    "size": "c.size DESC, c.last_seen DESC",
    "recent": "c.last_seen DESC, c.size DESC",
    "growing": "coalesce(l.recent, 0) - coalesce(l.earlier, 0) DESC, coalesce(l.recent, 0) DESC, c.size DESC",
}


@dataclass(frozen=True, slots=True)
class ClusterFilter:
    """Filter and sort order of cluster lists. Each word must occur in the text or the title."""

    words: tuple[str, ...] = ()
    min_size: int = 1
    alive: bool = False
    sort: Sort = "size"
    family: str = ""


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """A cluster with the counts and dates of its reports."""

    id: str
    canonical: int
    text: str
    title: str
    size: int
    open_count: int
    first_seen: datetime | None
    last_seen: datetime | None
    recent: int


class FamilyCounts(NamedTuple):
    """A family with the counts and dates of its reports; `recent`: those of the recent period."""

    text: str
    reports: int
    clusters: int
    open_count: int
    first_seen: datetime | None
    last_seen: datetime | None
    recent: int


def _periods(session: Session, repo_id: int) -> dict[str, datetime] | None:
    """Return the starts of the recent period and of the equally long one before it; None if empty."""
    newest = opened_span(session, repo_id).last
    return {"recent": newest - RECENT, "before": newest - 2 * RECENT} if newest is not None else None


def list_clusters(
    session: Session, repo_id: int, chosen: ClusterFilter, *, after: int = 0, limit: int = 50
) -> tuple[list[ClusterCounts], int]:
    """Return one page of clusters from offset `after` on, and the total count."""
    periods = _periods(session, repo_id)
    if periods is None:
        return [], 0
    least = max(chosen.min_size, 2 if chosen.alive else 1)
    conditions = ["c.repo_id = :repo_id", "c.size >= :least"]
    if chosen.alive:
        conditions.append("c.last_seen > c.closed_at")
    if chosen.family:
        conditions.append("""c.id IN (
            SELECT cluster_id FROM cluster_member WHERE repo_id = :repo_id AND family = :family)""")
    words = {f"word_{at}": _pattern(word) for at, word in enumerate(chosen.words)}
    if words:  # the unary + keeps SQLite from fetching the rows one by one through an index
        holding = " AND ".join(f"lower(w.text || ' ' || w.title) LIKE :{name} ESCAPE '/'" for name in words)
        conditions.append(f"c.id IN (SELECT w.id FROM cluster w WHERE +w.repo_id = :repo_id AND {holding})")
    bound: dict[str, Any] = {
        "repo_id": repo_id,
        "least": least,
        **({"family": chosen.family} if chosen.family else {}),
        **words,
    }
    grown = ""
    if chosen.sort == "growing":
        grown = f"LEFT JOIN ({_GROWTH}) AS l ON l.cluster_id = c.id"
        bound |= periods
    query = f"""
        SELECT c.id, count(*) OVER () FROM cluster c {grown} WHERE {" AND ".join(conditions)}
        ORDER BY {_ORDERS[chosen.sort]}, c.id LIMIT :limit OFFSET :after
    """
    rows = sql_rows(session, query, limit=limit, after=after, **bound)
    if not rows and after:
        return [], list_clusters(session, repo_id, chosen, limit=1)[1]
    counts = count_clusters(session, repo_id, [key for key, _ in rows])
    return [counts[key] for key, _ in rows], rows[0][1] if rows else 0


def _pattern(word: str) -> str:
    """Return the LIKE pattern, with escape character "/", for texts that contain the word."""
    word = word.lower()
    for sign in "/%_":
        word = word.replace(sign, f"/{sign}")
    return f"%{word}%"


def count_clusters(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, ClusterCounts]:
    """Return the counts of these current clusters; those whose reports are all gone are left out."""
    periods = _periods(session, repo_id)
    if periods is None:
        return {}
    query = f"""
        SELECT m.cluster_id, {_RECENT_COUNT} {_MEMBERS}
        WHERE m.repo_id = :repo_id AND m.cluster_id IN :ids AND i.gone_at IS NULL GROUP BY m.cluster_id
    """
    bound: dict[str, Any] = {"repo_id": repo_id, "ids": list(ids)}
    recent: dict[str, int] = dict(sql_rows(session, query, recent=periods["recent"], **bound))
    query = """
        SELECT id, canonical, text, title, size, open_count, first_seen, last_seen FROM cluster
        WHERE repo_id = :repo_id AND id IN :ids
    """
    rows = sql_rows(session, query, times=("first_seen", "last_seen"), **bound)
    return {row[0]: ClusterCounts(*(*row, recent[row[0]])) for row in rows if row[0] in recent}


@kept_until_written
def family_sizes(session: Session, repo_id: int) -> Mapping[str | None, int]:
    """Count the reports of each family of a repository, largest first; None: of no family."""
    query = """
        SELECT family, count(*) AS size FROM cluster_member
        WHERE repo_id = :repo_id AND number NOT IN (
            SELECT number FROM issue
            WHERE repo_id = :repo_id AND is_pull_request = false AND gone_at IS NOT NULL)
        GROUP BY family ORDER BY size DESC, family
    """
    return dict(sql_rows(session, query, repo_id=repo_id))


def count_families(session: Session, repo_id: int, families: Sequence[str]) -> list[FamilyCounts]:
    """Count these families, largest first."""
    periods = _periods(session, repo_id)
    if periods is None:
        return []
    query = f"""
        SELECT m.family, count(*) AS size, count(DISTINCT m.cluster_id),
        count(*) FILTER (WHERE i.state = 'open'), min(i.created_at) AS first, max(i.created_at) AS last,
        {_RECENT_COUNT}
        {_MEMBERS} WHERE m.repo_id = :repo_id AND m.family IN :families AND i.gone_at IS NULL
        GROUP BY m.family ORDER BY size DESC, m.family
    """
    bound: dict[str, Any] = {"repo_id": repo_id, "families": list(families), "recent": periods["recent"]}
    return list(map(FamilyCounts._make, sql_rows(session, query, times=("first", "last"), **bound)))


def reports_beside(session: Session, repo_id: int, numbers: Sequence[int]) -> list[Any]:
    """Return (issue, time, vLLM version) of every report in the cluster of each of these issues."""
    # CROSS JOIN fixes SQLite's join order; otherwise it would scan all issues.
    query = """
        SELECT mine.number, i.created_at AS at, f.value FROM cluster_member mine
        CROSS JOIN cluster_member m CROSS JOIN issue i
        LEFT JOIN fact f ON f.repo_id = m.repo_id AND f.number = m.number AND f.field = 'versions.vllm'
        WHERE mine.repo_id = :repo_id AND mine.number IN :numbers AND i.gone_at IS NULL
        AND m.repo_id = mine.repo_id AND m.cluster_id = mine.cluster_id
        AND i.repo_id = m.repo_id AND i.number = m.number
    """
    return sql_rows(session, query, times=("at",), repo_id=repo_id, numbers=list(numbers))


def hardware_by_cluster(session: Session, repo_id: int) -> list[tuple[str, int, str]]:
    """(cluster, issue, canonical name) of every accelerator that a report of a failure names."""
    query = """
        SELECT m.cluster_id, fact.number, fact.value FROM fact
        JOIN cluster_member m ON m.repo_id = fact.repo_id AND m.number = fact.number
        WHERE fact.field = 'gpus' AND fact.repo_id = :repo_id
    """
    return sql_rows(session, query, repo_id=repo_id)


def clusters_holding(session: Session, repo_id: int, signature_id: str) -> list[str]:
    """Return the clusters with a report whose root cause has this signature, largest first.

    If there is none, return those with a report that has the signature in any role.
    """
    for table in ("cluster_member", "occurrence"):
        query = f"""
            SELECT cluster_id FROM cluster_member WHERE repo_id = :repo_id AND cluster_id IN (
                SELECT cluster_id FROM cluster_member WHERE repo_id = :repo_id AND number IN (
                    SELECT number FROM {table} WHERE repo_id = :repo_id AND signature_id = :signature_id))
            GROUP BY cluster_id ORDER BY count(*) DESC, cluster_id
        """
        if rows := sql_rows(session, query, repo_id=repo_id, signature_id=signature_id):
            return [key for (key,) in rows]
    return []


def root_signatures(session: Session, repo_id: int, cluster_id: str) -> dict[int, str]:
    """Return the root-cause signature of each report of a cluster that has one."""
    query = """
        SELECT number, signature_id FROM cluster_member
        WHERE repo_id = :repo_id AND cluster_id = :cluster_id AND signature_id IS NOT NULL
    """
    return dict(sql_rows(session, query, repo_id=repo_id, cluster_id=cluster_id))


def cluster_sizes(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, int]:
    """Return the size of each issue's cluster; issues that report no failure are left out."""
    query = """
        SELECT mine.number, count(*) FROM cluster_member mine
        JOIN cluster_member m ON m.repo_id = mine.repo_id AND m.cluster_id = mine.cluster_id
        WHERE mine.repo_id = :repo_id AND mine.number IN :numbers GROUP BY mine.number
    """
    return dict(sql_rows(session, query, repo_id=repo_id, numbers=list(numbers)))


def sum_thumbs(session: Session, repo_id: int, comment_ids: Sequence[int]) -> dict[int, int]:
    """Return thumbs up minus thumbs down by comment id; comments without reaction data are left out."""
    query = select(_COMMENT.id, _COMMENT.raw["reactions"]).where(
        _COMMENT.repo_id == repo_id, _COMMENT.id.in_(list(comment_ids)), _COMMENT.gone_at.is_(None)
    )
    found: dict[int, int] = {}
    for key, reactions in session.connection().execute(query):
        if isinstance(reactions, dict):
            up, down = (reactions.get(name) for name in ("+1", "-1"))
            found[key] = (up if isinstance(up, int) else 0) - (down if isinstance(down, int) else 0)
    return found
