"""Which releases hold which merged pull request, by notes, table and comparison; and what was reverted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.engine.connect import sql_rows, take_turn, upsert
from app.store.session import remembered
from app.store.tables import FIX_CONTAINMENT, RELEASE

_RELEASE, _ANSWER = RELEASE.c, FIX_CONTAINMENT.c
REVERTS_DEEP = 6
"""How often a fix and its revert may take turns."""
COMPARE, TABLE, REVERT = "compare", "table", "revert"
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
        table_tag, table_day: the first release with it by the starter set's table, and the table's day.
    """

    named_in: tuple[str, ...] = ()
    answers: Mapping[str, bool] = field(default_factory=dict)
    commit_sha: str | None = None
    reverted_by: tuple[Landed, ...] = ()
    relanded_by: tuple[Landed, ...] = ()
    table_tag: str | None = None
    table_day: datetime | None = None


@dataclass(frozen=True, slots=True)
class History:
    """All that tells which release holds a fix."""

    releases: tuple[ReleaseDay, ...] = ()
    pulls: Mapping[int, PullHistory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainmentAnswer:
    """What GitHub or the starter set says; `contained` is None where GitHub lacks the tag or the commit."""

    number: int
    tag: str
    contained: bool | None
    commit_sha: str | None
    asked_at: datetime
    source: str = COMPARE


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
    tags = {row.tag for row in rows}
    unlisted = sorted({item.table_tag for item in known.values() if item.table_tag} - tags)
    return History(
        (*(ReleaseDay(*row) for row in rows), *(ReleaseDay(t, False, None) for t in unlisted)), known
    )


def _histories(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> dict[int, PullHistory]:
    # The sign keeps SQLite from reading all links of the repository in place of those to the numbers.
    query = """
        SELECT number, 'named' AS kind, tag, CAST(NULL AS boolean) AS contained, NULL AS sha,
        CAST(NULL AS bigint) AS pull, CAST(NULL AS timestamptz) AS at
        FROM release_pull WHERE repo_id = :repo_id AND number IN :numbers
        UNION ALL SELECT number, source, tag, contained, commit_sha, NULL, asked_at
        FROM fix_containment WHERE repo_id = :repo_id AND number IN :numbers
        UNION ALL SELECT number, 'merged', NULL, NULL, merge_commit_sha, NULL, NULL
        FROM pull_request WHERE repo_id = :repo_id AND number IN :numbers AND merged_at IS NOT NULL
        UNION ALL SELECT l.target_number, l.kind, NULL, NULL, NULL, l.number, p.merged_at
        FROM link l JOIN pull_request p ON p.repo_id = l.repo_id AND p.number = l.number
        WHERE +l.repo_id = :repo_id AND l.target_repo = :repo AND l.target_number IN :numbers
        AND l.kind IN ('reverts', 'relands') AND p.merged_at IS NOT NULL
    """
    rows = sql_rows(session, query, times=("at",), repo_id=repo_id, repo=repo, numbers=list(numbers))
    known = _by_number(rows)
    return {number: _history(known[number]) for number in numbers}


def _history(rows: Sequence[Any]) -> PullHistory:
    landed = {(kind, pull): at for kind, _, _, _, pull, at in rows if pull is not None}
    table = next(((tag, at) for kind, tag, *_, at in rows if kind == TABLE), (None, None))
    for kind, tag, *_, at in rows:
        if kind == REVERT:
            landed.setdefault(("reverts", int(tag.removeprefix("#"))), at)
    return PullHistory(
        named_in=tuple(tag for kind, tag, *_ in rows if kind == "named"),
        table_tag=table[0],
        table_day=table[1],
        answers={tag: bool(held) for kind, tag, held, *_ in rows if kind == COMPARE and held is not None},
        commit_sha=next((sha for _, _, _, sha, *_ in rows if sha), None),
        reverted_by=tuple(Landed(pull, at) for (kind, pull), at in landed.items() if kind == "reverts"),
        relanded_by=tuple(Landed(pull, at) for (kind, pull), at in landed.items() if kind == "relands"),
    )


def _by_number(rows: Iterable[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for number, *row in rows:
        found[number].append(row)
    return found


def save_answers(session: Session, repo_id: int, answers: Iterable[ContainmentAnswer]) -> None:
    """Keep what is known, so that GitHub is asked once."""
    take_turn(session)
    rows = [{"repo_id": repo_id, **asdict(answer)} for answer in answers]
    upsert(session, FIX_CONTAINMENT, rows, keys=("repo_id", "number", "tag"))


def has_table(session: Session, repo_id: int, day: datetime) -> bool:
    """Whether the table of this day, or a newer one, is stored."""
    query = select(_ANSWER.number).where(
        _ANSWER.repo_id == repo_id, _ANSWER.source == TABLE, _ANSWER.asked_at >= day
    )
    return session.connection().execute(query.limit(1)).first() is not None


def unnamed_fixes(session: Session, repo_id: int, repo: str, *, before: datetime) -> list[MergedFix]:
    """Merged fixes, reverts and re-landings that no full release's notes name, the newest first.

    Left out are those merged after `before`, those that a comparison or the table found in a release, and
    those of which GitHub does not know the commit.
    """
    query = """
        SELECT number, merged_at, merge_commit_sha FROM pull_request
        WHERE repo_id = :repo_id AND merged_at <= :before AND number NOT IN (
            SELECT p.number FROM release_pull p JOIN release r ON r.repo_id = p.repo_id AND r.tag = p.tag
            WHERE p.repo_id = :repo_id AND NOT r.is_prerelease)
        AND number IN (
            SELECT number FROM link WHERE repo_id = :repo_id AND target_repo = :repo
            AND kind IN ('fixes', 'reverts', 'relands')
            UNION SELECT target_number FROM link
            WHERE repo_id = :repo_id AND target_repo = :repo AND kind = 'fixed_by')
        ORDER BY merged_at DESC, number DESC
    """
    answers = select(*_ANSWER["number", "tag", "contained", "commit_sha"]).where(_ANSWER.repo_id == repo_id)
    kept = _by_number(session.connection().execute(answers))
    pulls = sql_rows(session, query, times=("merged_at",), repo_id=repo_id, repo=repo, before=before)
    fixes = [
        MergedFix(
            number,
            merged_at,
            sha or next((row[2] for row in kept[number] if row[2]), None),
            {tag: contained for tag, contained, _ in kept[number]},
        )
        for number, merged_at, sha in pulls
    ]
    return [fix for fix in fixes if True not in fix.asked.values() and NO_COMMIT not in fix.asked]
