"""Save, find and count repositories, issues, pull requests, comments and starter cards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, func, literal, select
from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.store.engine.connect import lock_writers, rows_with, upsert
from app.store.github.presence import find_kept_out, mark_unread, note_seen
from app.store.records import CARD, GITHUB, CommentRecord, IssueRecord
from app.store.tables import CARD_TEXT, COMMENT, ISSUE, PULL_REQUEST, REPOSITORY, SYNC_RUN

_KEY = ("repo_id", "number")

_ISSUE, _PULL = ISSUE.c, PULL_REQUEST.c
_FIELDS = tuple(item.name for item in fields(IssueRecord))
_LABELS = _FIELDS.index("labels")
_ISSUE_COLUMNS = set(_ISSUE.keys()) & {*_FIELDS}


def _issues_without(**left_out: Any) -> Select[Any]:
    """Return the query for issues and pull requests by `repo_id` and `numbers`, with IssueRecord's columns.

    Args:
        left_out: constants that replace columns which are not read.
    """
    columns = {**_PULL, "is_draft": func.coalesce(_PULL.is_draft, False), **_ISSUE}
    columns |= {name: literal(value).label(name) for name, value in left_out.items()}
    return (
        select(*(columns[name] for name in _FIELDS))
        .outerjoin_from(ISSUE, PULL_REQUEST)
        .where(
            _ISSUE.repo_id == bindparam("repo_id"), _ISSUE.number.in_(bindparam("numbers", expanding=True))
        )
    )


# Used by every diagnosis and page, so built once: building a statement costs more than running it.
_REPOSITORY = select(REPOSITORY.c.id).where(REPOSITORY.c.full_name == bindparam("full_name"))
_WHOLE, _TEXTS, _HEADS = _issues_without(), _issues_without(raw=None), _issues_without(raw=None, body="")


def add_repository(session: Session, full_name: str) -> int:
    """Return the repository's key, adding the repository if it is new."""
    found = find_repository(session, full_name)
    if not found:
        # Of two processes that add it at once, the second finds the first one's row after its upsert.
        upsert(session, REPOSITORY, [{"full_name": full_name}], keys=("full_name",))
        found = find_repository(session, full_name)
    if not found:
        raise NotFoundError(f"{full_name} could not be added")
    return found


def find_repository(session: Session, full_name: str) -> int:
    """Return the key of a repository, or 0, which no row has, if it is not stored."""
    return session.connection().execute(_REPOSITORY, {"full_name": full_name}).scalar() or 0


def save_issues(
    session: Session, repo_id: int, records: Iterable[IssueRecord], *, seen_at: datetime | None = None
) -> list[int]:
    """Store issues and pull requests; skip those that are older than the stored row.

    Rows with unchanged content are skipped too, so that the facts derived from them stay current.
    Saving an issue marked as gone removes the mark, unless it was set after `seen_at`.

    Args:
        seen_at: when these rows were requested from GitHub; None if they come from elsewhere.

    Returns:
        The numbers that are new or changed, ascending.
    """
    lock_writers(session)
    latest: dict[int, IssueRecord] = {}
    for record in records:
        known = latest.get(record.number)
        if known is None or _replaces(record, known.origin, known.updated_at):
            latest[record.number] = record
    for number in find_kept_out(session, repo_id, latest):
        del latest[number]
    columns = (_ISSUE[name] for name in _StoredState._fields)
    stored = {
        number: _StoredState(*state)
        for number, *state in rows_with(session, repo_id, _ISSUE.number, latest, *columns)
    }
    fresh = [
        record
        for number, record in latest.items()
        if number not in stored or _is_news(record, stored[number], seen_at)
    ]
    now = datetime.now(UTC)
    rows = [_issue_row(repo_id, record, now, seen_at) for record in fresh]
    upsert(session, ISSUE, rows, keys=_KEY)
    pulls = [record for record in fresh if record.is_pull_request]
    upsert(session, PULL_REQUEST, [_pull_row(repo_id, pull) for pull in pulls], keys=_KEY)
    changed = sorted(record.number for record in fresh)
    mark_unread(session, repo_id, changed)
    if seen_at is not None:
        note_seen(session, "issue", repo_id, sorted(latest.keys() - set(changed)), seen_at)
    return changed


class _StoredState(NamedTuple):
    origin: str
    is_pull_request: bool
    updated_at: datetime | None
    gone_at: datetime | None
    raw: Any


def _is_news(record: IssueRecord, stored: _StoredState, seen_at: datetime | None) -> bool:
    if stored.gone_at is not None and seen_at is not None and stored.gone_at > seen_at:
        return False
    is_same = (
        stored.origin == GITHUB
        and record.raw is not None
        and record.gone_at is stored.gone_at is None
        and (stored.is_pull_request, stored.raw) == (record.is_pull_request, record.raw)
    )
    return _replaces(record, stored.origin, stored.updated_at) and not is_same


def _replaces(record: IssueRecord, origin: str, updated_at: datetime | None) -> bool:
    if record.origin == CARD:
        return origin == CARD
    if origin == CARD or record.updated_at is None or updated_at is None:
        return True
    return record.updated_at >= updated_at


def _issue_row(repo_id: int, record: IssueRecord, now: datetime, seen_at: datetime | None) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in _ISSUE_COLUMNS}
    row |= {"repo_id": repo_id, "labels": list(record.labels), "fetched_at": record.fetched_at or now}
    return row if seen_at is None else row | {"seen_at": seen_at}


def _pull_row(repo_id: int, record: IssueRecord) -> dict[str, Any]:
    return {"repo_id": repo_id} | {name: getattr(record, name) for name in set(_PULL.keys()) - {"repo_id"}}


def find_issue(session: Session, repo_id: int, number: int) -> IssueRecord | None:
    """Return one issue or pull request, or None."""
    return next(iter(find_issues(session, repo_id, [number], with_raw=True)), None)


def get_issue(session: Session, repo: str, number: int) -> tuple[int, IssueRecord]:
    """Return the repository's key and one issue or pull request.

    Raises:
        NotFoundError: no issue with that number is stored.
    """
    repo_id = find_repository(session, repo)
    found = find_issue(session, repo_id, number)
    if found is None:
        raise NotFoundError(
            f"{repo}#{number} is not stored here; the page /report fetches issues of the configured "
            "repositories from GitHub."
        )
    return repo_id, found


def find_issues(
    session: Session, repo_id: int, numbers: Sequence[int], *, with_raw: bool = False
) -> list[IssueRecord]:
    """Return the stored issues with these numbers, in the given order; `raw` is None unless `with_raw`."""
    return _records(session, _WHOLE if with_raw else _TEXTS, repo_id, numbers)


def find_heads(session: Session, repo_id: int, numbers: Sequence[int]) -> list[IssueRecord]:
    """Like `find_issues`, for lists: `body` is empty and `raw` None."""
    return _records(session, _HEADS, repo_id, numbers)


def find_texts(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    """Return title, body and card of each issue as one text, except for pull requests and gone issues."""
    cards = find_cards(session, repo_id, numbers)
    columns = (_ISSUE.title, _ISSUE.body, _ISSUE.is_pull_request, _ISSUE.gone_at)
    return {
        number: "\n".join((title, body, cards.get(number, "")))
        for number, title, body, is_pull, gone_at in rows_with(
            session, repo_id, _ISSUE.number, numbers, *columns
        )
        if not is_pull and gone_at is None
    }


def _records(session: Session, query: Select[Any], repo_id: int, numbers: Sequence[int]) -> list[IssueRecord]:
    if not numbers:
        return []
    rows = session.connection().execute(query, {"repo_id": repo_id, "numbers": list(numbers)})
    found: dict[int, IssueRecord] = {}
    for row in rows.all():
        values: list[Any] = list(row)
        values[_LABELS] = tuple(values[_LABELS])
        found[values[0]] = IssueRecord(*values)
    return [found[number] for number in numbers if number in found]


def numbers_of(session: Session, repo_id: int, *, after: int = 0, limit: int = 500) -> list[int]:
    """Return the next stored numbers above `after`, ascending; for paging through all issues."""
    query = (
        select(_ISSUE.number)
        .where(_ISSUE.repo_id == repo_id, _ISSUE.number > after)
        .order_by(_ISSUE.number)
        .limit(limit)
    )
    return list(session.connection().execute(query).scalars())


def each_issue(session: Session, repo_id: int) -> Iterator[IssueRecord]:
    """Yield all stored issues and pull requests by number, with their texts but without `raw`."""
    after = 0
    while numbers := numbers_of(session, repo_id, after=after):
        yield from find_issues(session, repo_id, numbers)
        after = numbers[-1]


def save_cards(session: Session, repo_id: int, texts: Mapping[int, str]) -> None:
    """Store the text of starter cards by issue number; kept when the issue arrives from GitHub."""
    rows = [{"repo_id": repo_id, "number": number, "text": text} for number, text in texts.items()]
    upsert(session, CARD_TEXT, rows, keys=_KEY)


def find_cards(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, str]:
    """Return the text of each of these issues' starter cards; most issues have none."""
    return dict(rows_with(session, repo_id, CARD_TEXT.c.number, numbers, CARD_TEXT.c.text))


_ISSUES = select(func.count()).where(_ISSUE.repo_id == REPOSITORY.c.id, _ISSUE.is_pull_request.is_(False))
_AS_OF = select(func.max(SYNC_RUN.c.ended_at)).where(
    SYNC_RUN.c.repo_id == REPOSITORY.c.id, SYNC_RUN.c.outcome == "complete"
)
# Used by every diagnosis, so built once.
_STORED = select(*REPOSITORY.c, _ISSUES.scalar_subquery(), _AS_OF.scalar_subquery())


@dataclass(frozen=True, slots=True)
class StoredRepositories:
    """The stored ones of the requested repositories.

    Attributes:
        repositories: key to name.
        issues: number of issues, without pull requests.
        as_of: end of the newest complete sync; with several repositories, of the one furthest behind.
    """

    repositories: Mapping[int, str]
    issues: int
    as_of: datetime | None


def find_stored_repositories(session: Session, repos: Sequence[str]) -> StoredRepositories:
    """Return which of these repositories are stored, in the given order, with issue count and freshness."""
    every = {row.full_name: row for row in session.connection().execute(_STORED)}
    rows = [every[repo] for repo in dict.fromkeys(repos) if repo in every]
    return StoredRepositories(
        {row[0]: row[1] for row in rows},
        sum(row[2] for row in rows),
        min((row[3] for row in rows if row[3] is not None), default=None),
    )


def count_issues(session: Session, repo_id: int) -> dict[str, int]:
    """Return the stored counts {"issues", "pulls", "from_cards"}; the last are not yet known from GitHub."""
    query = select(
        func.count().filter(_ISSUE.is_pull_request.is_(False)).label("issues"),
        func.count().filter(_ISSUE.is_pull_request).label("pulls"),
        func.count().filter(_ISSUE.origin != GITHUB).label("from_cards"),
    )
    return dict(session.connection().execute(query.where(_ISSUE.repo_id == repo_id)).mappings().one())


_COMMENT = COMMENT.c
_COLUMNS = [item.name for item in fields(CommentRecord)]
# Used by every page, so built once.
_WITH_GONE = (
    select(*(_COMMENT[name] for name in _COLUMNS))
    .where(
        _COMMENT.repo_id == bindparam("repo_id"),
        _COMMENT.issue_number.in_(bindparam("numbers", expanding=True)),
    )
    .order_by(_COMMENT.created_at.nulls_first(), _COMMENT.id)
)
_COMMENTS = _WITH_GONE.where(_COMMENT.gone_at.is_(None))


def save_comments(
    session: Session, repo_id: int, records: Iterable[CommentRecord], *, seen_at: datetime | None = None
) -> list[int]:
    """Store comments by id; skip those that are older than the stored row or unchanged.

    Saving a comment marked as gone removes the mark, unless it was set after `seen_at`.

    Args:
        seen_at: when these rows were requested from GitHub; None if they come from elsewhere.

    Returns:
        The issue number of each new or changed comment, ascending.
    """
    lock_writers(session)
    latest: dict[int, CommentRecord] = {}
    for record in records:
        known = latest.get(record.id)
        if known is None or not _is_older(record.updated_at, known.updated_at):
            latest[record.id] = record
    kept_out = find_kept_out(session, repo_id, {record.issue_number for record in latest.values()})
    latest = {key: record for key, record in latest.items() if record.issue_number not in kept_out}
    columns = (_COMMENT.updated_at, _COMMENT.body, _COMMENT.gone_at)
    stored = {row[0]: row for row in rows_with(session, repo_id, _COMMENT.id, latest, *columns)}
    fresh = {
        key: record
        for key, record in latest.items()
        if key not in stored or _is_newer(record, stored[key], seen_at)
    }
    now = datetime.now(UTC)
    seen = {} if seen_at is None else {"seen_at": seen_at}
    rows = [
        {name: getattr(record, name) for name in _COLUMNS}
        | {"repo_id": repo_id, "fetched_at": now, "gone_at": None, **seen}
        for record in fresh.values()
    ]
    upsert(session, COMMENT, rows, keys=("repo_id", "id"))
    mark_unread(session, repo_id, sorted({record.issue_number for record in fresh.values()}))
    if seen_at is not None:
        note_seen(session, "comment", repo_id, sorted(latest.keys() - fresh.keys()), seen_at)
    return sorted(record.issue_number for record in fresh.values())


def _is_newer(record: CommentRecord, stored: Any, seen_at: datetime | None) -> bool:
    if _is_older(record.updated_at, stored.updated_at):
        return False
    if stored.gone_at is not None:
        return seen_at is None or stored.gone_at <= seen_at
    return (stored.updated_at, stored.body) != (record.updated_at, record.body)


def _is_older(moment: datetime | None, than: datetime | None) -> bool:
    return moment is not None and than is not None and moment < than


def find_comments(
    session: Session, repo_id: int, numbers: Sequence[int], *, with_gone: bool = False
) -> dict[int, list[CommentRecord]]:
    """Return the comments of these issues, oldest first; deleted ones only if `with_gone`."""
    query = _WITH_GONE if with_gone else _COMMENTS
    found: dict[int, list[CommentRecord]] = {}
    for row in session.connection().execute(query, {"repo_id": repo_id, "numbers": list(numbers)}):
        record = CommentRecord(*row)
        found.setdefault(record.issue_number, []).append(record)
    return found
