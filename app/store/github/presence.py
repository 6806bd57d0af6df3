"""Track which issues and comments still exist on GitHub: deleted ones are kept and marked as gone.

GitHub's lists have no tombstones: a deleted row is just missing. So `seen_at` records when the last list with
the row was requested, and a complete crawl then finds the rows it did not see. `seen_at` has a fixed length,
so SQLite updates it in place without rewriting the long columns of the row.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import exists, or_, select, update
from sqlalchemy.orm import Session

from app.store.engine.connect import delete_with, in_parts, lock_writers, rows_in_parts
from app.store.records import GITHUB
from app.store.tables import COMMENT, ISSUE, ISSUE_VECTOR, MODEL_REPLY, READING, REPOSITORY

UNREAD = "unread"
"""Stored instead of a rules version for issues that must be read again."""

TAKEN_DOWN = "taken down"
KEPT_OUT = "kept out"
"""Reasons why an issue is gone whose texts were deleted on request: until the next sync, or permanently."""

Kind = Literal["issue", "comment"]
_TABLES = {"issue": (ISSUE, ISSUE.c.number), "comment": (COMMENT, COMMENT.c.id)}


def mark_gone(session: Session, kind: Kind, repo_id: int, key: int, reason: str = "") -> bool:
    """Mark an issue (with a reason) or a comment as gone and its issue unread; True if it was not marked."""
    lock_writers(session)
    table, column = _TABLES[kind]
    values: dict[str, Any] = {"gone_at": datetime.now(UTC)}
    values |= {"gone_reason": reason[:20]} if kind == "issue" else {}
    is_it = (table.c.repo_id == repo_id) & (column == key) & table.c.gone_at.is_(None)
    owner = table.c.number if kind == "issue" else COMMENT.c.issue_number
    marked = session.connection().execute(update(table).where(is_it).values(values).returning(owner))
    numbers = list(marked.scalars())
    mark_unread(session, repo_id, numbers)
    return bool(numbers)


def take_down(session: Session, repo_id: int, number: int, *, keep_out: bool) -> bool:
    """Delete an issue's texts, comments, model replies and vector, but not its facts; True if it was stored.

    Args:
        keep_out: do not let a sync, delivery or import store it again; so it stays, once it was said.
    """
    lock_writers(session)
    is_kept_out = keep_out or bool(find_kept_out(session, repo_id, [number]))
    for column in (COMMENT.c.issue_number, MODEL_REPLY.c.number, ISSUE_VECTOR.c.number):
        delete_with(session, repo_id, column, [number])
    values: dict[str, Any] = {
        "title": TAKEN_DOWN,
        "body": "",
        "author": None,
        "author_association": None,
        "labels": [],
        "raw": None,
        "updated_at": None,
        "gone_at": datetime.now(UTC),
        "gone_reason": KEPT_OUT if is_kept_out else TAKEN_DOWN,
    }
    is_it = (ISSUE.c.repo_id == repo_id) & (ISSUE.c.number == number)
    found = session.connection().execute(update(ISSUE).where(is_it).values(values)).rowcount > 0
    mark_unread(session, repo_id, [number])
    return found


def find_kept_out(session: Session, repo_id: int, numbers: Iterable[int]) -> set[int]:
    """Return those of these issues that must not be stored again."""
    query = select(ISSUE.c.number).where(ISSUE.c.repo_id == repo_id, ISSUE.c.gone_reason == KEPT_OUT)
    return {number for (number,) in rows_in_parts(session, query, ISSUE.c.number, numbers)}


def all_kept_out(session: Session) -> list[tuple[str, int]]:
    """Return (repository, number) of every issue that must not be stored again, sorted."""
    query = select(REPOSITORY.c.full_name, ISSUE.c.number).join_from(ISSUE, REPOSITORY)
    rows = session.connection().execute(query.where(ISSUE.c.gone_reason == KEPT_OUT))
    return sorted((repo, number) for repo, number in rows)


def mark_unread(session: Session, repo_id: int, numbers: Sequence[int]) -> None:
    """Mark these issues as changed, so that they are read again; independent of clocks."""
    for part in in_parts(numbers):
        statement = update(READING).where(READING.c.repo_id == repo_id, READING.c.number.in_(part))
        session.connection().execute(statement.values(rules_version=UNREAD))


def find_gone(session: Session, kind: Kind, repo_id: int, keys: Sequence[int]) -> dict[int, datetime]:
    """Return when each of these issues or comments was marked as gone; others are left out."""
    table, column = _TABLES[kind]
    query = select(column, table.c.gone_at).where(table.c.repo_id == repo_id, table.c.gone_at.is_not(None))
    return dict(rows_in_parts(session, query, column, keys))


def last_seen(session: Session, kind: Kind, repo_id: int, key: int) -> datetime | None:
    """Return when the newest GitHub response with this issue or comment was requested."""
    table, column = _TABLES[kind]
    query = select(table.c.seen_at).where(table.c.repo_id == repo_id, column == key)
    return session.connection().execute(query).scalar()


def note_seen(session: Session, kind: Kind, repo_id: int, keys: Sequence[int], seen_at: datetime) -> None:
    """Record that a list requested at `seen_at` had these issues or comments; does not mark them changed."""
    table, column = _TABLES[kind]
    is_older = or_(table.c.seen_at.is_(None), table.c.seen_at < seen_at)
    for part in in_parts(keys):
        statement = update(table).where(table.c.repo_id == repo_id, column.in_(part), is_older)
        session.connection().execute(statement.values(seen_at=seen_at))


def find_unseen(session: Session, kind: Kind, repo_id: int, since: datetime) -> list[int]:
    """Return issues or comments from GitHub, not marked as gone, that no list since `since` had; ascending.

    Comments of gone issues are left out, as they share the issue's mark.
    """
    table, column = _TABLES[kind]
    query = select(column).where(
        table.c.repo_id == repo_id,
        table.c.gone_at.is_(None),
        or_(table.c.seen_at.is_(None), table.c.seen_at < since),
    )
    if kind == "issue":
        query = query.where(ISSUE.c.origin == GITHUB)
    else:
        is_its = (ISSUE.c.repo_id == COMMENT.c.repo_id) & (ISSUE.c.number == COMMENT.c.issue_number)
        query = query.where(~exists().where(is_its, ISSUE.c.gone_at.is_not(None)))
    return list(session.connection().execute(query.order_by(column)).scalars())
