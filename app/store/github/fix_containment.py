"""Which releases hold which merged pull request, by notes and by comparison; and what was reverted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, cast, literal, null, select, union_all
from sqlmodel import Session

from app.store.engine.connect import rows_in_parts, take_turn, upsert
from app.store.session import remembered
from app.store.tables import FIX_CONTAINMENT, LINK, PULL_REQUEST, RELEASE, RELEASE_PULL

_RELEASE, _NAMED, _ANSWER = RELEASE.c, RELEASE_PULL.c, FIX_CONTAINMENT.c
_LINK, _PULL = LINK.c, PULL_REQUEST.c
REVERTS_DEEP = 6
"""How often a fix and its revert may take turns."""
NO_COMMIT = "-"
"""Stands for a tag where GitHub was asked for the merge commit itself and had none."""


@dataclass(frozen=True, slots=True)
class Landed:
    """A merged pull request and when it was merged; None where it is not stored."""

    number: int
    merged_at: datetime | None


class ReleaseDay(NamedTuple):
    """A release without its notes."""

    tag: str
    is_prerelease: bool
    published_at: datetime | None


@dataclass(frozen=True, slots=True)
class PullHistory:
    """What is known of one pull request after its merge.

    Attributes:
        named_in: tags of the releases whose notes name it.
        answers: tags and commits that were compared with its merge commit: whether they hold it.
        commit_sha: its merge commit.
        reverted_by, relanded_by: merged pull requests that take it back, or bring it back.
    """

    named_in: tuple[str, ...] = ()
    answers: Mapping[str, bool] = field(default_factory=dict)
    commit_sha: str | None = None
    reverted_by: tuple[Landed, ...] = ()
    relanded_by: tuple[Landed, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """All that tells which release holds a fix."""

    releases: tuple[ReleaseDay, ...] = ()
    pulls: Mapping[int, PullHistory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainmentAnswer:
    """What GitHub answered; `contained` is None where it does not know the tag or the commit."""

    number: int
    tag: str
    contained: bool | None
    commit_sha: str | None
    asked_at: datetime
    source: str = "compare"


@dataclass(frozen=True, slots=True)
class MergedFix:
    """A merged pull request that no release's notes name, with the tags that were compared already."""

    number: int
    merged_at: datetime
    commit_sha: str | None
    asked: Mapping[str, bool | None]


def find_history(session: Session, repo_id: int, repo: str, pulls: Iterable[int]) -> History:
    """The history of these pull requests, of those that revert them or bring them back, and all releases."""
    known: dict[int, PullHistory] = {}
    wanted = set(pulls)
    if not wanted:
        return History()
    for _ in range(REVERTS_DEEP):
        found = _histories(session, repo_id, repo, sorted(wanted)) if wanted else {}
        known |= found
        landed = (one for item in found.values() for one in (*item.reverted_by, *item.relanded_by))
        wanted = {one.number for one in landed} - known.keys()
    query = select(_RELEASE.tag, _RELEASE.is_prerelease, _RELEASE.published_at)
    query = query.where(_RELEASE.repo_id == repo_id)
    rows = remembered(session, ("releases", repo_id), lambda: session.connection().execute(query).all())
    return History(tuple(ReleaseDay(*row) for row in rows), known)


def _histories(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> dict[int, PullHistory]:
    is_merged = (_PULL.repo_id == repo_id) & _PULL.merged_at.is_not(None)
    landings = (
        _known(_LINK.target_number, _LINK.kind, pull=_LINK.number, at=_PULL.merged_at)
        .join_from(LINK, PULL_REQUEST, (_PULL.repo_id == _LINK.repo_id) & (_PULL.number == _LINK.number))
        .where(is_merged, _LINK.target_repo == repo, _LINK.kind.in_(("reverts", "relands")))
    )
    known = union_all(
        _known(_NAMED.number, literal("named"), tag=_NAMED.tag).where(_NAMED.repo_id == repo_id),
        _known(
            *(_ANSWER.number, literal("asked")),
            tag=_ANSWER.tag,
            contained=_ANSWER.contained,
            sha=_ANSWER.commit_sha,
        ).where(_ANSWER.repo_id == repo_id),
        _known(_PULL.number, literal("merged"), sha=_PULL.merge_commit_sha).where(is_merged),
        landings,
    ).subquery()
    rows = _by_number(rows_in_parts(session, select(known), known.c.number, numbers))
    return {number: _history(rows[number]) for number in numbers}


def _known(number: Any, kind: Any, **values: Any) -> Select[Any]:
    """A part of what is known of pull requests; all parts have the same columns."""
    types = {"tag": _NAMED.tag, "contained": _ANSWER.contained, "sha": _ANSWER.commit_sha}
    types |= {"pull": _LINK.number, "at": _PULL.merged_at}
    columns = (values.get(name, cast(null(), like.type)).label(name) for name, like in types.items())
    return select(number.label("number"), kind.label("kind"), *columns)


def _history(rows: Sequence[Any]) -> PullHistory:
    landed = [(kind, Landed(pull, at)) for kind, _, _, _, pull, at in rows if pull is not None]
    return PullHistory(
        named_in=tuple(tag for kind, tag, *_ in rows if kind == "named"),
        answers={tag: contained for _, tag, contained, *_ in rows if contained is not None},
        commit_sha=next((sha for _, _, _, sha, *_ in rows if sha), None),
        reverted_by=tuple(pull for kind, pull in landed if kind == "reverts"),
        relanded_by=tuple(pull for kind, pull in landed if kind == "relands"),
    )


def _by_number(rows: Iterable[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for number, *row in rows:
        found[number].append(row)
    return found


def save_answers(session: Session, repo_id: int, answers: Iterable[ContainmentAnswer]) -> None:
    """Keep what GitHub answered, so that it is asked once."""
    take_turn(session)
    rows = [{"repo_id": repo_id, **asdict(answer)} for answer in answers]
    upsert(session, FIX_CONTAINMENT, rows, keys=("repo_id", "number", "tag"))


def unnamed_fixes(session: Session, repo_id: int, repo: str, *, before: datetime) -> list[MergedFix]:
    """Merged fixes, reverts and re-landings that no full release's notes name, the newest first.

    Left out are those merged after `before`, those that a comparison found in a release, and those of which
    GitHub does not know the commit.
    """
    named = (
        select(_NAMED.number)
        .join_from(RELEASE_PULL, RELEASE)
        .where(_NAMED.repo_id == repo_id, _RELEASE.is_prerelease.is_(False))
    )
    ours = (_LINK.repo_id == repo_id) & (_LINK.target_repo == repo)
    fixing = select(_LINK.number).where(ours, _LINK.kind.in_(("fixes", "reverts", "relands")))
    stated = select(_LINK.target_number).where(ours, _LINK.kind == "fixed_by")
    query = (
        select(_PULL.number, _PULL.merged_at, _PULL.merge_commit_sha)
        .where(
            _PULL.repo_id == repo_id,
            _PULL.merged_at <= before,
            _PULL.number.not_in(named),
            _PULL.number.in_(fixing) | _PULL.number.in_(stated),
        )
        .order_by(_PULL.merged_at.desc(), _PULL.number.desc())
    )
    answers = select(_ANSWER.number, _ANSWER.tag, _ANSWER.contained, _ANSWER.commit_sha)
    kept = _by_number(session.connection().execute(answers.where(_ANSWER.repo_id == repo_id)))
    fixes = [
        MergedFix(
            number,
            merged_at,
            sha or next((row[2] for row in kept[number] if row[2]), None),
            {tag: contained for tag, contained, _ in kept[number]},
        )
        for number, merged_at, sha in session.connection().execute(query).all()
    ]
    return [fix for fix in fixes if True not in fix.asked.values() and NO_COMMIT not in fix.asked]
