"""Which releases hold which merged pull request, by notes and by comparison; and what was reverted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Boolean, String, bindparam, cast, literal, null, union_all
from sqlalchemy import select as sql_select
from sqlmodel import Session

from app.store.engine.connect import take_turn, upsert
from app.store.tables import UtcDateTime, metadata

_RELEASE, _NAMED = metadata.tables["release"].c, metadata.tables["release_pull"].c
_ANSWER, _LINK = metadata.tables["fix_containment"].c, metadata.tables["link"].c
_PULL, _ISSUE = metadata.tables["pull_request"].c, metadata.tables["issue"].c
_NO_TEXT, _NO_FLAG, _NO_TIME = cast(null(), String), cast(null(), Boolean), cast(null(), UtcDateTime())
_NUMBERS: BindParameter[Any] = bindparam("numbers", expanding=True)
_REPO: BindParameter[Any] = bindparam("repo_id")


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


# Asked with every diagnosis, so built once and in one statement; a row's first column says what it tells.
_HISTORY = union_all(
    sql_select(
        literal("release").label("part"),
        literal(0).label("number"),
        _RELEASE.tag.label("tag"),
        _RELEASE.is_prerelease.label("flag"),
        _RELEASE.published_at.label("moment"),
        _NO_TEXT.label("commit_sha"),
        literal(0).label("other"),
    ).where(_RELEASE.repo_id == _REPO, bindparam("with_releases", type_=Boolean)),
    sql_select(literal("named"), _NAMED.number, _NAMED.tag, _NO_FLAG, _NO_TIME, _NO_TEXT, literal(0)).where(
        _NAMED.repo_id == _REPO, _NAMED.number.in_(_NUMBERS)
    ),
    sql_select(
        literal("answer"),
        _ANSWER.number,
        _ANSWER.tag,
        _ANSWER.contained,
        _NO_TIME,
        _ANSWER.commit_sha,
        literal(0),
    ).where(_ANSWER.repo_id == _REPO, _ANSWER.number.in_(_NUMBERS)),
    sql_select(
        literal("commit"), _PULL.number, _NO_TEXT, _NO_FLAG, _NO_TIME, _PULL.merge_commit_sha, literal(0)
    ).where(
        _PULL.repo_id == _REPO,
        _PULL.number.in_(_NUMBERS),
        _PULL.merged_at.is_not(None),
        _PULL.merge_commit_sha.is_not(None),
    ),
    sql_select(_LINK.kind, _LINK.target_number, _NO_TEXT, _NO_FLAG, _PULL.merged_at, _NO_TEXT, _LINK.number)
    .join_from(
        metadata.tables["link"],
        metadata.tables["pull_request"],
        (_PULL.repo_id == _LINK.repo_id) & (_PULL.number == _LINK.number),
    )
    .where(
        _LINK.repo_id == _REPO,
        _LINK.target_repo == bindparam("repo"),
        _LINK.target_number.in_(_NUMBERS),
        _LINK.kind.in_(["reverts", "relands"]),
        _PULL.merged_at.is_not(None),
    ),
)
REVERTS_DEEP = 6
"""How often a fix and its revert may take turns."""


def find_history(session: Session, repo_id: int, repo: str, pulls: Iterable[int]) -> History:
    """The history of these pull requests, of those that revert them or bring them back, and all releases.

    One statement where nothing was reverted.
    """
    releases: list[ReleaseDay] = []
    known: dict[int, PullHistory] = {}
    wanted = set(pulls)
    for depth in range(REVERTS_DEEP):
        if not wanted:
            break
        asked = {"repo_id": repo_id, "repo": repo, "numbers": sorted(wanted), "with_releases": depth == 0}
        rows: list[Any] = list(session.connection().execute(_HISTORY, asked).all())
        releases += [ReleaseDay(row[2], bool(row[3]), row[4]) for row in rows if row[0] == "release"]
        told = [row for row in rows if row[0] != "release"]
        known |= {number: _history_of(number, told) for number in wanted}
        wanted = {row[6] for row in rows if row[0] in {"reverts", "relands"}} - known.keys()
    return History(tuple(releases), known)


def _history_of(number: int, rows: Sequence[Any]) -> PullHistory:
    mine = [row for row in rows if row[1] == number]
    return PullHistory(
        named_in=tuple(row[2] for row in mine if row[0] == "named"),
        answers={row[2]: bool(row[3]) for row in mine if row[0] == "answer" and row[3] is not None},
        commit_sha=next((row[5] for row in mine if row[5] is not None), None),
        reverted_by=tuple(Landed(row[6], row[4]) for row in mine if row[0] == "reverts"),
        relanded_by=tuple(Landed(row[6], row[4]) for row in mine if row[0] == "relands"),
    )


def save_answers(session: Session, repo_id: int, answers: Iterable[ContainmentAnswer]) -> None:
    """Keep what GitHub answered, so that it is asked once."""
    take_turn(session)
    rows = [
        {
            "repo_id": repo_id,
            "number": answer.number,
            "tag": answer.tag,
            "contained": answer.contained,
            "commit_sha": answer.commit_sha,
            "source": answer.source,
            "asked_at": answer.asked_at,
        }
        for answer in answers
    ]
    upsert(session, metadata.tables["fix_containment"], rows, keys=("repo_id", "number", "tag"))


def full_releases(session: Session, repo_id: int) -> list[ReleaseDay]:
    """The full releases with a date, the oldest first."""
    query = (
        sql_select(_RELEASE.tag, _RELEASE.is_prerelease, _RELEASE.published_at)
        .where(
            _RELEASE.repo_id == repo_id, _RELEASE.is_prerelease.is_(False), _RELEASE.published_at.is_not(None)
        )
        .order_by(_RELEASE.published_at, _RELEASE.tag)
    )
    return [ReleaseDay(tag, flag, day) for tag, flag, day in session.connection().execute(query)]


def unnamed_fixes(session: Session, repo_id: int, repo: str, *, before: datetime) -> list[MergedFix]:
    """Merged fixes, reverts and re-landings that no full release's notes name, the newest first.

    Left out are those merged after `before`, those that a comparison found in a release, and those of which
    GitHub does not know the commit.
    """
    named = (
        sql_select(_NAMED.number)
        .join_from(
            metadata.tables["release_pull"],
            metadata.tables["release"],
            (_RELEASE.repo_id == _NAMED.repo_id) & (_RELEASE.tag == _NAMED.tag),
        )
        .where(_NAMED.repo_id == repo_id, _RELEASE.is_prerelease.is_(False))
    )
    told = sql_select(_LINK.number).where(
        _LINK.repo_id == repo_id, _LINK.target_repo == repo, _LINK.kind.in_(["fixes", "reverts", "relands"])
    )
    said = sql_select(_LINK.target_number).where(
        _LINK.repo_id == repo_id, _LINK.target_repo == repo, _LINK.kind == "fixed_by"
    )
    query = (
        sql_select(_PULL.number, _PULL.merged_at, _PULL.merge_commit_sha)
        .where(
            _PULL.repo_id == repo_id,
            _PULL.merged_at.is_not(None),
            _PULL.merged_at <= before,
            _PULL.number.not_in(named),
            _PULL.number.in_(told) | _PULL.number.in_(said),
        )
        .order_by(_PULL.merged_at.desc(), _PULL.number.desc())
    )
    found = session.connection().execute(query).all()
    kept = _kept_answers(session, repo_id)
    fixes = [
        MergedFix(
            number,
            merged_at,
            sha or next((row[2] for row in kept.get(number, ()) if row[2]), None),
            {tag: contained for tag, contained, _ in kept.get(number, ())},
        )
        for number, merged_at, sha in found
    ]
    return [fix for fix in fixes if True not in fix.asked.values() and NO_COMMIT not in fix.asked]


NO_COMMIT = "-"
"""Stands for a tag where GitHub was asked for the merge commit itself and had none."""


def _kept_answers(session: Session, repo_id: int) -> dict[int, list[tuple[str, bool | None, str | None]]]:
    query = sql_select(_ANSWER.number, _ANSWER.tag, _ANSWER.contained, _ANSWER.commit_sha).where(
        _ANSWER.repo_id == repo_id
    )
    kept: dict[int, list[tuple[str, bool | None, str | None]]] = {}
    for number, tag, contained, sha in session.connection().execute(query):
        kept.setdefault(number, []).append((tag, contained, sha))
    return kept
