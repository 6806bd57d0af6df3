"""Clusters, the failures in them, and the ids that once named one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import Column, Select, bindparam, delete, func, select
from sqlmodel import Session

from app.store.engine.connect import KEYS_PER_QUERY, rows_in_parts, upsert
from app.store.tables import CLUSTER, CLUSTER_ALIAS, CLUSTER_MEMBER, LINK

TYING = ("similar", "duplicate")
PAIRS_PER_CLUSTER = 40
"""Two clusters may be linked by many pairs; only so many, on average, are looked through."""

_LINK, _CLUSTER = LINK.c, CLUSTER.c
_MEMBER, _ALIAS = CLUSTER_MEMBER.c, CLUSTER_ALIAS.c
_THEIRS = CLUSTER_MEMBER.alias("theirs")


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
    """A link from one report to another; likeness has a score."""

    number: int
    target: int
    kind: str
    score: float | None
    reason: str


class NearLink(NamedTuple):
    """The likest pair between a cluster and another one."""

    number: int
    target: int
    cluster_id: str
    score: float
    reason: str


def links_within(session: Session, repo_id: int, repo: str, cluster_id: str) -> list[ReportLink]:
    """The links between two reports of a cluster, the likest first."""
    query = (
        _links_of(repo_id, repo, cluster_id, TYING)
        .where(_THEIRS.c.cluster_id == cluster_id)
        .order_by(func.coalesce(_LINK.score, 1.0).desc(), _LINK.number, _LINK.target_number)
    )
    return [ReportLink(*row[:-1]) for row in session.connection().execute(query)]


def near_clusters(
    session: Session, repo_id: int, repo: str, cluster_id: str, *, limit: int
) -> list[NearLink]:
    """The clusters whose reports are linked as alike with this one's, each by its likest pair."""
    query = (
        _links_of(repo_id, repo, cluster_id, TYING[:1])
        .where(_THEIRS.c.cluster_id != cluster_id)
        .order_by(_LINK.score.desc(), _LINK.number, _LINK.target_number)
        .limit(limit * PAIRS_PER_CLUSTER)
    )
    found: dict[str, NearLink] = {}
    for number, target, _, score, reason, theirs in session.connection().execute(query):
        found.setdefault(theirs, NearLink(number, target, theirs, score, reason))
    return list(found.values())[:limit]


def _links_of(repo_id: int, repo: str, cluster_id: str, kinds: Sequence[str]) -> Select[Any]:
    # Not joined: SQLite would then begin with all links that point into the repository.
    ours = select(_MEMBER.number).where(_MEMBER.repo_id == repo_id, _MEMBER.cluster_id == cluster_id)
    columns = (_LINK.number, _LINK.target_number, _LINK.kind, _LINK.score, _LINK.reason)
    is_theirs = (_THEIRS.c.repo_id == _LINK.repo_id) & (_THEIRS.c.number == _LINK.target_number)
    return (
        select(*columns, _THEIRS.c.cluster_id)
        .join_from(LINK, _THEIRS, is_theirs)
        .where(
            _LINK.repo_id == repo_id,
            _LINK.number.in_(ours),
            _LINK.target_repo == repo,
            _LINK.kind.in_(kinds),
        )
    )


def find_members(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, MemberRecord]:
    """Those of these issues that are in a cluster."""
    query = select(_MEMBER.number, _MEMBER.signature_id, _MEMBER.traits, _MEMBER.cluster_id)
    found = {}
    for number, signature_id, kept, cluster_id in rows_in_parts(
        session, query.where(_MEMBER.repo_id == repo_id), _MEMBER.number, numbers
    ):
        traits: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}
        found[number] = MemberRecord(FailureTraits(number, signature_id, **traits), cluster_id)
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
        keys = {name: traits.pop(name) for name in ("number", "signature_id")}
        rows.append({"repo_id": repo_id, **keys, "cluster_id": item.cluster_id, "traits": traits})
    upsert(session, CLUSTER_MEMBER, rows, keys=("repo_id", "number"))


def remove_members(session: Session, repo_id: int, numbers: Iterable[int]) -> None:
    """Take these issues out of all clusters."""
    _delete(session, _MEMBER.number, repo_id, numbers)


def replace_clusters(
    session: Session, repo_id: int, removed: Iterable[str], saved: Sequence[ClusterRecord]
) -> None:
    """Remove the clusters of these ids and keep others, in place of what was known of them.

    What is saved is no alias any more.
    """
    _delete(session, _CLUSTER.id, repo_id, removed)
    rows = [{"repo_id": repo_id, **asdict(item)} for item in saved]
    upsert(session, CLUSTER, rows, keys=("repo_id", "id"))
    remove_aliases(session, repo_id, [item.id for item in saved])


def find_aliases(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[str, int]:
    """The ids that once named a cluster about one of these issues, each with its issue."""
    query = select(_ALIAS.old_id, _ALIAS.number).where(_ALIAS.repo_id == repo_id)
    return dict(rows_in_parts(session, query, _ALIAS.number, numbers))


def save_aliases(session: Session, repo_id: int, aliases: Mapping[str, int]) -> None:
    """Keep ids that once named a cluster, each with the issue whose cluster it leads to."""
    rows = [{"repo_id": repo_id, "old_id": key, "number": number} for key, number in sorted(aliases.items())]
    upsert(session, CLUSTER_ALIAS, rows, keys=("repo_id", "old_id"))


def remove_aliases(session: Session, repo_id: int, ids: Iterable[str]) -> None:
    """Forget that these ids once named a cluster."""
    _delete(session, _ALIAS.old_id, repo_id, ids)


def _delete(session: Session, column: Column[Any], repo_id: int, values: Iterable[Any]) -> None:
    table = column.table
    asked = sorted(set(values))
    for start in range(0, len(asked), KEYS_PER_QUERY):
        part = column.in_(asked[start : start + KEYS_PER_QUERY])
        session.connection().execute(delete(table).where(table.c.repo_id == repo_id, part))


_FELLOW = CLUSTER_MEMBER.alias("fellow").c
# Asked with every issue, so built once.
_CLUSTER_WITH = (
    select(
        *(_CLUSTER.id, _CLUSTER.canonical, _CLUSTER.text),
        select(func.count())
        .where(_FELLOW.repo_id == _CLUSTER.repo_id, _FELLOW.cluster_id == _CLUSTER.id)
        .scalar_subquery(),
    )
    .join_from(
        CLUSTER_MEMBER,
        CLUSTER,
        (_CLUSTER.repo_id == _MEMBER.repo_id) & (_CLUSTER.id == _MEMBER.cluster_id),
    )
    .where(_MEMBER.repo_id == bindparam("repo_id"), _MEMBER.number == bindparam("number"))
)


def find_cluster_with(session: Session, repo_id: int, number: int) -> tuple[ClusterRecord, int] | None:
    """The cluster that an issue is in, and how many are; None for what reports no failure."""
    found = session.connection().execute(_CLUSTER_WITH, {"repo_id": repo_id, "number": number}).first()
    return (ClusterRecord(*found[:3]), found[3]) if found is not None else None


def find_clusters(session: Session, repo_id: int, ids: Sequence[str]) -> dict[str, ClusterRecord]:
    """The clusters of these ids, by the id asked for; one that once named a cluster finds today's.

    An id that never named one is left out. A record's own `id` is today's.
    """
    is_member = (_MEMBER.repo_id == _ALIAS.repo_id) & (_MEMBER.number == _ALIAS.number)
    renamed = select(_ALIAS.old_id, _MEMBER.cluster_id).join_from(CLUSTER_ALIAS, CLUSTER_MEMBER, is_member)
    renamed = renamed.where(_ALIAS.repo_id == repo_id)
    current = dict(rows_in_parts(session, renamed, _ALIAS.old_id, ids))
    wanted = {asked: current.get(asked, asked) for asked in ids}
    query = select(_CLUSTER.id, _CLUSTER.canonical, _CLUSTER.text).where(_CLUSTER.repo_id == repo_id)
    found = {
        row[0]: ClusterRecord(*row) for row in rows_in_parts(session, query, _CLUSTER.id, wanted.values())
    }
    return {asked: found[key] for asked, key in wanted.items() if key in found}


def members_of(session: Session, repo_id: int, cluster_ids: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The numbers of the issues in each of these clusters of today, ascending."""
    found: dict[str, list[int]] = {}
    # Put in order here: to get them in order, SQLite would read all members of the repository.
    query = select(_MEMBER.cluster_id, _MEMBER.number).where(_MEMBER.repo_id == repo_id)
    for cluster_id, number in rows_in_parts(session, query, _MEMBER.cluster_id, cluster_ids):
        found.setdefault(cluster_id, []).append(number)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def cluster_of(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, str]:
    """The id of the cluster that each of these issues is in; what reports no failure is in none."""
    query = select(_MEMBER.number, _MEMBER.cluster_id).where(_MEMBER.repo_id == repo_id)
    return dict(rows_in_parts(session, query, _MEMBER.number, numbers))
