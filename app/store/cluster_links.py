"""What ties the reports of a cluster together, and what is alike but stands in another cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, func
from sqlalchemy import select as sql_select
from sqlmodel import Session

from app.store.cluster_tables import metadata

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


def near_clusters(
    session: Session, repo_id: int, repo: str, cluster_id: str, *, limit: int
) -> list[NearTie]:
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
            metadata.tables["link"], _THEIRS,
            (_THEIRS.c.repo_id == _LINK.repo_id) & (_THEIRS.c.number == _LINK.target_number),
        )
        .where(
            _LINK.repo_id == repo_id, _LINK.number.in_(ours), _LINK.target_repo == repo,
            _LINK.kind.in_(kinds),
        )
    )  # fmt: skip
