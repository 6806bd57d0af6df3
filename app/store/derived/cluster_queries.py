"""What is counted of clusters: how many reports, since when, how many lately; which hardware they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Select, case, func
from sqlalchemy import select as sql_select
from sqlmodel import Session

from app.store.tables import metadata

Sort = Literal["size", "recent", "growing"]
RECENT = timedelta(days=28)
"""What counts as lately, before the newest report of the base: a base that was not synced has its own now."""
NUMBERS_PER_STATEMENT = 900

_CLUSTER, _MEMBER = metadata.tables["cluster"].c, metadata.tables["cluster_member"].c
_ISSUE, _FACT = metadata.tables["issue"].c, metadata.tables["fact"].c
_CANONICAL = metadata.tables["issue"].alias("canonical")
_IS_MEMBER = (_ISSUE.repo_id == _MEMBER.repo_id) & (_ISSUE.number == _MEMBER.number)
_IS_CANONICAL = (_CANONICAL.c.repo_id == _CLUSTER.repo_id) & (_CANONICAL.c.number == _CLUSTER.canonical)
_CAME_LATER = (_CANONICAL.c.state == "closed") & (_ISSUE.created_at > _CANONICAL.c.closed_at)
_SEEN, _COMMENT = metadata.tables["occurrence"].c, metadata.tables["comment"].c


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
    query = sql_select(func.max(_ISSUE.created_at)).where(_ISSUE.repo_id == repo_id)
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
    found: dict[str, ClusterCounts] = {}
    if newest is None:
        return found
    recent, before = _periods(newest)
    for start in range(0, len(ids), NUMBERS_PER_STATEMENT):
        query = (
            _with_canonical(
                sql_select(
                    _CLUSTER.id,
                    _CLUSTER.canonical,
                    _CLUSTER.text,
                    _CANONICAL.c.title,
                    func.count(),
                    _number_of(_ISSUE.state == "open"),
                    func.min(_ISSUE.created_at),
                    func.max(_ISSUE.created_at),
                    _number_of(recent),
                    _number_of(before),
                    _number_of(_CAME_LATER),
                )
            )
            .where(_MEMBER.repo_id == repo_id, _ISSUE.gone_at.is_(None))
            .where(_MEMBER.cluster_id.in_(ids[start : start + NUMBERS_PER_STATEMENT]))
            .group_by(_CLUSTER.id, _CLUSTER.canonical, _CLUSTER.text, _CANONICAL.c.title)
        )
        found |= {row[0]: ClusterCounts(*row) for row in session.connection().execute(query)}
    return found


def _grouped(repo_id: int, chosen: ClusterFilter, newest: datetime) -> Select[Any]:
    """The ids that the filter leaves and their number; texts are read for the part that is shown only."""
    query = sql_select(_MEMBER.cluster_id, func.count().over())
    if chosen.alive:
        query = _with_canonical(query).having(_number_of(_CAME_LATER) > 0)
    else:
        query = query.join_from(metadata.tables["cluster_member"], metadata.tables["issue"], _IS_MEMBER)
    query = query.where(_MEMBER.repo_id == repo_id, _ISSUE.gone_at.is_(None))
    least = max(chosen.min_size, 2 if chosen.alive else 1)
    if least > 1:
        big = sql_select(_MEMBER.cluster_id).where(_MEMBER.repo_id == repo_id).group_by(_MEMBER.cluster_id)
        query = query.where(_MEMBER.cluster_id.in_(big.having(func.count() >= least)))
        query = query.having(func.count() >= least)
    if chosen.words:
        query = query.where(_MEMBER.cluster_id.in_(_told_by(repo_id, chosen.words)))
    return query.group_by(_MEMBER.cluster_id).add_columns(
        func.count().label("size"),
        func.max(_ISSUE.created_at).label("last"),
        *(_number_of(period).label(name) for name, period in zip("rb", _periods(newest), strict=True)),
    )


def _ordered(query: Select[Any], sort: Sort) -> Select[Any]:
    told = query.subquery()
    size, last, recent = told.c.size.desc(), told.c.last.desc(), told.c.r.desc()
    first = {
        "size": (size, last),
        "recent": (last, size),
        "growing": ((told.c.r - told.c.b).desc(), recent, size),
    }[sort]
    return sql_select(told).order_by(*first, told.c.cluster_id)


def _told_by(repo_id: int, words: Sequence[str]) -> Select[Any]:
    """The clusters in whose text or title all these words stand."""
    text = func.lower(_CLUSTER.text + " " + _CANONICAL.c.title)
    return (
        sql_select(_CLUSTER.id)
        .join_from(metadata.tables["cluster"], _CANONICAL, _IS_CANONICAL)
        .where(_CLUSTER.repo_id == repo_id)
        .where(*(text.contains(word.lower(), autoescape=True) for word in words))
    )


def _with_canonical(query: Select[Any]) -> Select[Any]:
    return (
        query.select_from(metadata.tables["cluster_member"])
        .join(metadata.tables["issue"], _IS_MEMBER)
        .join(
            metadata.tables["cluster"],
            (_CLUSTER.repo_id == _MEMBER.repo_id) & (_CLUSTER.id == _MEMBER.cluster_id),
        )
        .join(_CANONICAL, _IS_CANONICAL)
    )


def _periods(newest: datetime) -> tuple[Any, Any]:
    """Written lately, and in the time of that length before."""
    recent = _ISSUE.created_at > newest - RECENT
    return recent, (_ISSUE.created_at > newest - 2 * RECENT) & ~recent


def _number_of(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def hardware_by_cluster(session: Session, repo_id: int) -> list[tuple[str, int, str]]:
    """(cluster, issue, canonical name) of every accelerator that a report of a failure names."""
    query = (
        sql_select(_MEMBER.cluster_id, _FACT.number, _FACT.value)
        .join_from(
            metadata.tables["fact"],
            metadata.tables["cluster_member"],
            (_MEMBER.repo_id == _FACT.repo_id) & (_MEMBER.number == _FACT.number),
        )
        .where(_FACT.field == "gpus", _FACT.repo_id == repo_id)
    )
    rows = session.connection().execute(query)
    return [(cluster, number, value) for cluster, number, value in rows]


def clusters_holding(session: Session, repo_id: int, signature_id: str) -> list[str]:
    """The clusters whose reports have this signature, the biggest first: by the root cause where any has it.

    Only where none has it as its root cause, those that have it otherwise.
    """
    roots = sql_select(_MEMBER.number).where(_MEMBER.repo_id == repo_id, _MEMBER.signature_id == signature_id)
    seen = sql_select(_SEEN.number).where(_SEEN.repo_id == repo_id, _SEEN.signature_id == signature_id)
    for numbers in (roots, seen):
        held = sql_select(_MEMBER.cluster_id).where(_MEMBER.repo_id == repo_id, _MEMBER.number.in_(numbers))
        query = (
            sql_select(_MEMBER.cluster_id)
            .where(_MEMBER.repo_id == repo_id, _MEMBER.cluster_id.in_(held))
            .group_by(_MEMBER.cluster_id)
            .order_by(func.count().desc(), _MEMBER.cluster_id)
        )
        if found := list(session.connection().execute(query).scalars()):
            return found
    return []


def root_signatures(session: Session, repo_id: int, cluster_id: str) -> dict[int, str]:
    """The signature of the root cause of each report of a cluster that has one."""
    query = sql_select(_MEMBER.number, _MEMBER.signature_id).where(
        _MEMBER.repo_id == repo_id, _MEMBER.cluster_id == cluster_id, _MEMBER.signature_id.is_not(None)
    )
    return {number: key for number, key in session.connection().execute(query)}  # noqa: C416


def cluster_sizes(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, int]:
    """How many reports the cluster of each of these issues has; what reports no failure is left out."""
    found: dict[int, int] = {}
    for start in range(0, len(numbers), NUMBERS_PER_STATEMENT):
        part = list(numbers[start : start + NUMBERS_PER_STATEMENT])
        mine = metadata.tables["cluster_member"].alias("mine")
        query = (
            sql_select(mine.c.number, func.count())
            .join_from(
                mine,
                metadata.tables["cluster_member"],
                (_MEMBER.repo_id == mine.c.repo_id) & (_MEMBER.cluster_id == mine.c.cluster_id),
            )
            .where(mine.c.repo_id == repo_id, mine.c.number.in_(part))
            .group_by(mine.c.number)
        )
        found |= {number: size for number, size in session.connection().execute(query)}  # noqa: C416
    return found


def sum_thumbs(session: Session, repo_id: int, comment_ids: Sequence[int]) -> dict[int, int]:
    """Thumbs up less thumbs down, by comment; those of which GitHub told no reactions are left out."""
    query = sql_select(_COMMENT.id, _COMMENT.raw["reactions"]).where(
        _COMMENT.repo_id == repo_id, _COMMENT.id.in_(list(comment_ids)), _COMMENT.gone_at.is_(None)
    )
    found: dict[int, int] = {}
    for key, told in session.connection().execute(query):
        if isinstance(told, dict):
            up, down = told.get("+1"), told.get("-1")
            found[key] = (up if isinstance(up, int) else 0) - (down if isinstance(down, int) else 0)
    return found
