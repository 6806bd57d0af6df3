"""Releases, the pull requests each contains (by notes, starter table or commit comparison), and reverts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.extract.versions import ordered, sort_key
from app.store.engine.connect import lock_writers, rows_in_parts, sql_rows, upsert
from app.store.records import ReleaseRecord
from app.store.tables import FIX_CONTAINMENT, PULL_REQUEST, RELEASE, RELEASE_PULL

_RELEASE, _NAMED, _ANSWER = RELEASE.c, RELEASE_PULL.c, FIX_CONTAINMENT.c
REVERTS_DEEP = 6
"""Maximum length of a chain of reverts and re-landings."""
COMPARE, TABLE, REVERT = "compare", "table", "revert"
NO_COMMIT = "-"
"""Stored instead of a tag if GitHub does not know the merge commit itself."""


@dataclass(frozen=True, slots=True)
class LandedPull:
    """A merged pull request; `merged_at` is None if it is not stored."""

    number: int
    merged_at: datetime | None


class ReleaseDay(NamedTuple):
    """A release without its notes."""

    tag: str
    is_prerelease: bool
    published_at: datetime | None


@dataclass(frozen=True, slots=True)
class PullHistory:
    """The releases, reverts and re-landings of a merged pull request.

    Attributes:
        named_in: tags of the releases whose notes mention it.
        answers: for each tag or commit compared with its merge commit, whether it contains that commit.
        commit_sha: its merge commit.
        reverted_by, relanded_by: merged pull requests that revert or re-land it.
        table_tag, table_day: its first release by the starter set's table, and the table's date.
    """

    named_in: tuple[str, ...] = ()
    answers: Mapping[str, bool] = field(default_factory=dict)
    commit_sha: str | None = None
    reverted_by: tuple[LandedPull, ...] = ()
    relanded_by: tuple[LandedPull, ...] = ()
    table_tag: str | None = None
    table_day: datetime | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The data that decides which releases contain a fix."""

    releases: tuple[ReleaseDay, ...] = ()
    pulls: Mapping[int, PullHistory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainmentAnswer:
    """Whether a tag contains a pull request; `contained` is None if GitHub lacks the tag or the commit."""

    number: int
    tag: str
    contained: bool | None
    commit_sha: str | None
    asked_at: datetime
    source: str = COMPARE


@dataclass(frozen=True, slots=True)
class MergedFix:
    """A merged pull request that no release's notes mention, with the tags already compared."""

    number: int
    merged_at: datetime
    commit_sha: str | None
    asked: Mapping[str, bool | None]


def find_history(session: Session, repo_id: int, repo: str, pulls: Iterable[int]) -> History:
    """Return the history of these pull requests and of their reverts and re-landings, and all releases."""
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
    rows = session.connection().execute(query).all()
    tags = {row.tag for row in rows}
    unlisted = sorted({item.table_tag for item in known.values() if item.table_tag} - tags)
    return History(
        (*(ReleaseDay(*row) for row in rows), *(ReleaseDay(t, False, None) for t in unlisted)), known
    )


def _histories(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> dict[int, PullHistory]:
    # The unary + makes SQLite use the index by link target instead of reading all links of the repository.
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
        reverted_by=tuple(LandedPull(pull, at) for (kind, pull), at in landed.items() if kind == "reverts"),
        relanded_by=tuple(LandedPull(pull, at) for (kind, pull), at in landed.items() if kind == "relands"),
    )


def _by_number(rows: Iterable[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for number, *row in rows:
        found[number].append(row)
    return found


def save_answers(session: Session, repo_id: int, answers: Iterable[ContainmentAnswer]) -> None:
    """Store containment answers, so that GitHub is asked only once."""
    lock_writers(session)
    rows = [{"repo_id": repo_id, **asdict(answer)} for answer in answers]
    upsert(session, FIX_CONTAINMENT, rows, keys=("repo_id", "number", "tag"))


def has_table(session: Session, repo_id: int, day: datetime) -> bool:
    """True if the starter set's table of this date, or a newer one, is stored."""
    query = select(_ANSWER.number).where(
        _ANSWER.repo_id == repo_id, _ANSWER.source == TABLE, _ANSWER.asked_at >= day
    )
    return session.connection().execute(query.limit(1)).first() is not None


def unnamed_fixes(session: Session, repo_id: int, repo: str, *, before: datetime) -> list[MergedFix]:
    """Return merged fixes, reverts and re-landings that no full release's notes mention, newest first.

    Left out are those merged after `before`, those found in a release by comparison or table, and
    those whose merge commit GitHub does not know.
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


def save_releases(session: Session, repo_id: int, records: Iterable[ReleaseRecord]) -> None:
    """Store releases and the pull requests mentioned in their notes."""
    lock_writers(session)
    latest = {record.tag: record for record in records}
    rows = [{"repo_id": repo_id, **asdict(record)} for record in latest.values()]
    for row in rows:
        del row["pulls"]
    upsert(session, RELEASE, rows, keys=("repo_id", "tag"))
    is_saved = (_NAMED.repo_id == repo_id) & _NAMED.tag.in_(list(latest))
    session.connection().execute(delete(RELEASE_PULL).where(is_saved))
    named = [
        {"repo_id": repo_id, "tag": record.tag, "number": number}
        for record in latest.values()
        for number in dict.fromkeys(record.pulls)
    ]
    upsert(session, RELEASE_PULL, named, keys=("repo_id", "tag", "number"))


def tags_of(session: Session, repo_id: int) -> set[str]:
    """Return the tags of all stored releases."""
    query = select(_RELEASE.tag).where(_RELEASE.repo_id == repo_id)
    return set(session.connection().execute(query).scalars())


def missing_for_fixes(session: Session, repo_id: int) -> tuple[str, ...]:
    """Return which of "releases" and "pull requests", both needed to date fixes, have no stored rows."""
    needed = {"releases": _RELEASE.repo_id, "pull requests": PULL_REQUEST.c.repo_id}
    found = session.connection()
    return tuple(
        name
        for name, key in needed.items()
        if found.execute(select(key).where(key == repo_id).limit(1)).first() is None
    )


def first_releases_of(session: Session, repo_id: int, pulls: Sequence[int]) -> dict[int, str]:
    """Return the first full release known to contain each pull request, by notes, table or comparison."""
    named = select(_NAMED.number, _NAMED.tag).join_from(RELEASE_PULL, RELEASE)
    named = named.where(_NAMED.repo_id == repo_id, _RELEASE.is_prerelease.is_(False))
    found = select(_ANSWER.number, _ANSWER.tag).where(_ANSWER.repo_id == repo_id, _ANSWER.contained)
    rows: list[tuple[int, str]] = [
        *rows_in_parts(session, named, _NAMED.number, pulls),
        *rows_in_parts(session, found, _ANSWER.number, pulls),
    ]
    return dict(sorted(rows, key=lambda row: (ordered(row[1]) is None, sort_key(row[1])), reverse=True))


def newest_release(session: Session, repo_id: int) -> str | None:
    """Return the tag of the newest full release, or None."""
    query = (
        select(_RELEASE.tag)
        .where(_RELEASE.repo_id == repo_id, _RELEASE.is_prerelease.is_(False))
        .order_by(_RELEASE.published_at.desc().nulls_last())
        .limit(1)
    )
    return session.connection().execute(query).scalar()
