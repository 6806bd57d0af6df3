"""What is counted of clusters: how many reports, since when, how many lately; which hardware they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Select, func, select
from sqlmodel import Session

from app.store.engine.connect import rows_in_parts
from app.store.tables import CLUSTER, CLUSTER_MEMBER, COMMENT, FACT, ISSUE, OCCURRENCE

Sort = Literal["size", "recent", "growing"]
RECENT = timedelta(days=28)
"""What counts as lately, before the newest report of the base: a base that was not synced has its own now."""

_CLUSTER, _MEMBER = CLUSTER.c, CLUSTER_MEMBER.c
_ISSUE, _FACT = ISSUE.c, FACT.c
_CANONICAL = ISSUE.alias("canonical")
_IS_MEMBER = (_ISSUE.repo_id == _MEMBER.repo_id) & (_ISSUE.number == _MEMBER.number)
_IS_CANONICAL = (_CANONICAL.c.repo_id == _CLUSTER.repo_id) & (_CANONICAL.c.number == _CLUSTER.canonical)
_CAME_LATER = (_CANONICAL.c.state == "closed") & (_ISSUE.created_at > _CANONICAL.c.closed_at)
_SEEN, _COMMENT = OCCURRENCE.c, COMMENT.c


@dataclass(frozen=True, slots=True)
class ClusterFilter:
    """Which clusters to list, and in which order; each word must stand in the text or the title."""

    words: tuple[str, ...] = ()
    min_size: int = 1
    alive: bool = False
    sort: Sort = "size"


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """What is counted of a cluster's reports; `since_closed` came after its canonical one was closed."""

    id: str
    canonical: int
    text: str
    title: str
    size: int
    open_count: int
    first_seen: datetime | None
    last_seen: datetime | None
    recent: int
    before: int
    since_closed: int


def newest_report(session: Session, repo_id: int) -> datetime | None:
    """When the newest issue or pull request of the base was written."""
    query = select(func.max(_ISSUE.created_at)).where(_ISSUE.repo_id == repo_id)
    return session.connection().execute(query).scalar()


def list_clusters(
    session: Session, repo_id: int, chosen: ClusterFilter, *, after: int = 0, limit: int = 50
) -> tuple[list[ClusterCounts], int]:
    """A part of the clusters from place `after` on, and how many there are in all."""
    newest = newest_report(session, repo_id)
    if newest is None:
        return [], 0
    query = _ordered(_grouped(repo_id, chosen, newest), chosen.sort).offset(after).limit(limit)
    rows = session.connection().execute(query).all()
    if not rows and after:
        return [], list_clusters(session, repo_id, chosen, limit=1)[1]
    counts = count_clusters(session, repo_id, [row[0] for row in rows])
    return [counts[row[0]] for row in rows], rows[0][1] if rows else 0


def count_clusters(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, ClusterCounts]:
    """What is counted of these clusters of today."""
    newest = newest_report(session, repo_id)
    if newest is None:
        return {}
    recent, before = _periods(newest)
    of_cluster = (_CLUSTER.id, _CLUSTER.canonical, _CLUSTER.text, _CANONICAL.c.title)
    query = (
        _with_canonical(
            select(
                *of_cluster,
                func.count(),
                _number_of(_ISSUE.state == "open"),
                func.min(_ISSUE.created_at),
                func.max(_ISSUE.created_at),
                *map(_number_of, (recent, before, _CAME_LATER)),
            )
        )
        .where(_MEMBER.repo_id == repo_id, _ISSUE.gone_at.is_(None))
        .group_by(*of_cluster)
    )
    return {row[0]: ClusterCounts(*row) for row in rows_in_parts(session, query, _MEMBER.cluster_id, ids)}


def _grouped(repo_id: int, chosen: ClusterFilter, newest: datetime) -> Select[Any]:
    """The ids that the filter leaves and their number; texts are read for the part that is shown only."""
    query = select(_MEMBER.cluster_id, func.count().over())
    if chosen.alive:
        query = _with_canonical(query).having(_number_of(_CAME_LATER) > 0)
    else:
        query = query.join_from(CLUSTER_MEMBER, ISSUE, _IS_MEMBER)
    query = query.where(_MEMBER.repo_id == repo_id, _ISSUE.gone_at.is_(None))
    least = max(chosen.min_size, 2 if chosen.alive else 1)
    if least > 1:
        big = select(_MEMBER.cluster_id).where(_MEMBER.repo_id == repo_id).group_by(_MEMBER.cluster_id)
        query = query.where(_MEMBER.cluster_id.in_(big.having(func.count() >= least)))
        query = query.having(func.count() >= least)
    if chosen.words:
        query = query.where(_MEMBER.cluster_id.in_(_holding(repo_id, chosen.words)))
    return query.group_by(_MEMBER.cluster_id).add_columns(
        func.count().label("size"),
        func.max(_ISSUE.created_at).label("last"),
        *(_number_of(period).label(name) for name, period in zip("rb", _periods(newest), strict=True)),
    )


def _ordered(query: Select[Any], sort: Sort) -> Select[Any]:
    clusters = query.subquery().c
    size, last, recent = clusters.size.desc(), clusters.last.desc(), clusters.r.desc()
    first = {
        "size": (size, last),
        "recent": (last, size),
        "growing": ((clusters.r - clusters.b).desc(), recent, size),
    }[sort]
    return select(*clusters).order_by(*first, clusters.cluster_id)


def _holding(repo_id: int, words: Sequence[str]) -> Select[Any]:
    """The clusters in whose text or title all these words stand."""
    text = func.lower(_CLUSTER.text + " " + _CANONICAL.c.title)
    return (
        select(_CLUSTER.id)
        .join_from(CLUSTER, _CANONICAL, _IS_CANONICAL)
        .where(_CLUSTER.repo_id == repo_id)
        .where(*(text.contains(word.lower(), autoescape=True) for word in words))
    )


def _with_canonical(query: Select[Any]) -> Select[Any]:
    return (
        query.select_from(CLUSTER_MEMBER)
        .join(ISSUE, _IS_MEMBER)
        .join(
            CLUSTER,
            (_CLUSTER.repo_id == _MEMBER.repo_id) & (_CLUSTER.id == _MEMBER.cluster_id),
        )
        .join(_CANONICAL, _IS_CANONICAL)
    )


def _periods(newest: datetime) -> tuple[Any, Any]:
    """Written lately, and in the time of that length before."""
    recent = _ISSUE.created_at > newest - RECENT
    return recent, (_ISSUE.created_at > newest - 2 * RECENT) & ~recent


def _number_of(condition: Any) -> Any:
    return func.count().filter(condition)


def hardware_by_cluster(session: Session, repo_id: int) -> list[tuple[str, int, str]]:
    """(cluster, issue, canonical name) of every accelerator that a report of a failure names."""
    is_its = (_MEMBER.repo_id == _FACT.repo_id) & (_MEMBER.number == _FACT.number)
    query = (
        select(_MEMBER.cluster_id, _FACT.number, _FACT.value)
        .join_from(FACT, CLUSTER_MEMBER, is_its)
        .where(_FACT.field == "gpus", _FACT.repo_id == repo_id)
    )
    return [(cluster, number, value) for cluster, number, value in session.connection().execute(query)]


def clusters_holding(session: Session, repo_id: int, signature_id: str) -> list[str]:
    """The clusters whose reports have this signature, the biggest first: by the root cause where any has it.

    Only where none has it as its root cause, those that have it otherwise.
    """
    for table in (_MEMBER, _SEEN):
        numbers = select(table.number).where(table.repo_id == repo_id, table.signature_id == signature_id)
        held = select(_MEMBER.cluster_id).where(_MEMBER.repo_id == repo_id, _MEMBER.number.in_(numbers))
        query = (
            select(_MEMBER.cluster_id)
            .where(_MEMBER.repo_id == repo_id, _MEMBER.cluster_id.in_(held))
            .group_by(_MEMBER.cluster_id)
            .order_by(func.count().desc(), _MEMBER.cluster_id)
        )
        if found := list(session.connection().execute(query).scalars()):
            return found
    return []


def root_signatures(session: Session, repo_id: int, cluster_id: str) -> dict[int, str]:
    """The signature of the root cause of each report of a cluster that has one."""
    query = select(_MEMBER.number, _MEMBER.signature_id).where(
        _MEMBER.repo_id == repo_id, _MEMBER.cluster_id == cluster_id, _MEMBER.signature_id.is_not(None)
    )
    return dict(iter(session.connection().execute(query)))


def cluster_sizes(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, int]:
    """How many reports the cluster of each of these issues has; what reports no failure is left out."""
    mine = CLUSTER_MEMBER.alias("mine").c
    is_fellow = (_MEMBER.repo_id == mine.repo_id) & (_MEMBER.cluster_id == mine.cluster_id)
    query = select(mine.number, func.count()).where(mine.repo_id == repo_id, is_fellow).group_by(mine.number)
    return dict(rows_in_parts(session, query, mine.number, numbers))


def sum_thumbs(session: Session, repo_id: int, comment_ids: Sequence[int]) -> dict[int, int]:
    """Thumbs up less thumbs down, by comment; those of which GitHub gave no reactions are left out."""
    query = select(_COMMENT.id, _COMMENT.raw["reactions"]).where(
        _COMMENT.repo_id == repo_id, _COMMENT.id.in_(list(comment_ids)), _COMMENT.gone_at.is_(None)
    )
    found: dict[int, int] = {}
    for key, reactions in session.connection().execute(query):
        if isinstance(reactions, dict):
            up, down = (reactions.get(name) for name in ("+1", "-1"))
            found[key] = (up if isinstance(up, int) else 0) - (down if isinstance(down, int) else 0)
    return found
