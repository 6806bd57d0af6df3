"""User-submitted data: judgements of issue pairs, redacted logs, votes; and the keys that hash visitors."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_bytes
from typing import Any, Literal

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.store.engine.connect import (
    insert_new,
    lock_writers,
    rows_in_parts,
    rows_with,
    sql_rows,
    upsert,
)
from app.store.records import Pair, pair_of
from app.store.tables import JUDGEMENT, KEPT_LOG, REMEDY_VOTE, SECRET, VOTE

Verdict = Literal["same", "different"]
UndoneWhy = Literal["undone", "replaced"]
_TABLE = JUDGEMENT
_IN_FORCE = _TABLE.c.undone_at.is_(None)


@dataclass(frozen=True, slots=True)
class JudgementRecord:
    """A person's verdict on a pair of issues; active while `undone_at` is None."""

    id: int
    repo_id: int
    a: int
    b: int
    verdict: Verdict
    note: str | None
    judged_at: datetime
    undone_at: datetime | None = None
    undone_why: UndoneWhy | None = None


def save_judgement(
    session: Session, repo_id: int, a: int, b: int, verdict: Verdict, note: str | None = None
) -> tuple[JudgementRecord, bool]:
    """Save a judgement, replacing the pair's active one. Return it, and whether anything changed."""
    lock_writers(session)
    low, high = pair_of(a, b)
    is_pair = (_TABLE.c.repo_id == repo_id) & (_TABLE.c.a == low) & (_TABLE.c.b == high)
    former = _find(session, is_pair, _IN_FORCE)
    if former and (former[0].verdict, former[0].note) == (verdict, note):
        return former[0], False
    now = datetime.now(UTC)
    for record in former:
        _end(session, record.id, now, "replaced")
    row = {"repo_id": repo_id, "a": low, "b": high, "verdict": verdict, "note": note, "judged_at": now}
    session.connection().execute(insert(_TABLE).values(row))
    return _find(session, is_pair, _IN_FORCE)[0], True


def undo_judgement(session: Session, judgement_id: int) -> JudgementRecord | None:
    """Undo a judgement and return it, or None if the id is unknown. An inactive one is left unchanged."""
    lock_writers(session)
    _end(session, judgement_id, datetime.now(UTC), "undone")
    return next(iter(_find(session, _TABLE.c.id == judgement_id)), None)


def list_judgements(
    session: Session, repo_id: int, *, below: int | None = None, limit: int = 50, ended: bool = False
) -> list[JudgementRecord]:
    """Return judgements, newest first; with `below`, those with a lower id (for paging)."""
    chosen = [_TABLE.c.repo_id == repo_id]
    chosen += [] if below is None else [_TABLE.c.id < below]
    chosen += [] if ended else [_IN_FORCE]
    return _find(session, *chosen, limit=limit)


def judged_pairs(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[Pair, Verdict]:
    """Return the active verdict on each pair that includes at least one of these issues."""
    return {(item.a, item.b): item.verdict for item in judgements_among(session, repo_id, numbers)}


def judgements_among(session: Session, repo_id: int, numbers: Iterable[int]) -> list[JudgementRecord]:
    """Return the active judgements that include at least one of these issues, newest first."""
    query = f"""
        SELECT {", ".join(_TABLE.c.keys())} FROM judgement
        WHERE repo_id = :repo_id AND undone_at IS NULL AND (a IN :numbers OR b IN :numbers) ORDER BY id DESC
    """
    rows = sql_rows(session, query, times=("judged_at",), repo_id=repo_id, numbers=list(numbers))
    return [JudgementRecord(*row) for row in rows]


def _find(session: Session, *chosen: ColumnElement[bool], limit: int | None = None) -> list[JudgementRecord]:
    query = select(_TABLE).where(*chosen).order_by(_TABLE.c.id.desc()).limit(limit)
    return [JudgementRecord(*row) for row in session.connection().execute(query)]


def _end(session: Session, judgement_id: int, now: datetime, why: UndoneWhy) -> None:
    is_it = _TABLE.c.id == judgement_id
    session.connection().execute(update(_TABLE).where(is_it, _IN_FORCE).values(undone_at=now, undone_why=why))


LATE = timedelta(days=7)
"""Logs are purged hourly: one that expired longer ago means that no purge ran, or that the clock is wrong."""

_LOG = KEPT_LOG.c


@dataclass(frozen=True, slots=True)
class KeptLogRecord:
    """A kept log. `delete_key` is the hash of the delete link's secret, `owner` the client's hash."""

    id: str
    delete_key: str
    log: str
    answer: dict[str, Any]
    kept_at: datetime
    expires_at: datetime
    owner: str | None = None
    size: int | None = None


def add_kept_log(session: Session, record: KeptLogRecord) -> None:
    """Store a log; its id must be new."""
    session.connection().execute(insert(KEPT_LOG).values(**asdict(record)))


def find_kept_log(session: Session, key: str, now: datetime) -> KeptLogRecord | None:
    """Return the log with this id, unless it has expired."""
    query = select(KEPT_LOG).where(_LOG.id == key, _LOG.expires_at > now)
    return next((KeptLogRecord(*row) for row in session.connection().execute(query)), None)


def delete_kept_log(session: Session, key: str, delete_key: str | None) -> bool:
    """Delete the log with this id if `delete_key` matches; return True if one was deleted.

    With None, which only the operator may pass, the key is not checked.
    """
    is_it = (_LOG.id == key) & (delete_key is None or _LOG.delete_key == delete_key)
    return session.connection().execute(delete(KEPT_LOG).where(is_it)).rowcount > 0


def purge_kept_logs(session: Session, now: datetime, *, is_sure: bool = False) -> int:
    """Delete expired logs and return how many.

    A clock far ahead would delete all of them. So if even the newest log expired more than `LATE` ago,
    nothing is deleted unless `is_sure` says that the time is right.
    """
    newest = select(func.max(_LOG.expires_at)).scalar_subquery()
    is_over = (_LOG.expires_at <= now) & (is_sure or newest > now - LATE)
    return session.connection().execute(delete(KEPT_LOG).where(is_over)).rowcount


def sum_kept_logs(
    session: Session, owner: str | None = None, *, expired_before: datetime | None = None
) -> tuple[int, int]:
    """Return the count and total bytes of kept logs; of one owner or expired by a time, if given."""
    query = select(func.count(), func.coalesce(func.sum(_LOG.size), 0)).select_from(KEPT_LOG)
    query = query if owner is None else query.where(_LOG.owner == owner)
    query = query if expired_before is None else query.where(_LOG.expires_at <= expired_before)
    count, size = session.connection().execute(query).one()
    return count, int(size)


KEY_BYTES = 32
_VOTE, _REMEDY = VOTE.c, REMEDY_VOTE.c


def find_secret(session: Session, name: str) -> bytes | None:
    """Return the key with this name, or None if it does not exist yet."""
    return session.connection().execute(select(SECRET.c.value).where(SECRET.c.name == name)).scalar()


def make_secret(session: Session, name: str) -> bytes:
    """Return the key with this name, creating it if needed. Concurrent callers get the same key."""
    made = token_bytes(KEY_BYTES)
    insert_new(session, SECRET, {"name": name, "value": made}, keys=("name",))
    return find_secret(session, name) or made


def save_vote(session: Session, repo_id: int, number: int, signal: str, visitor: str, value: int) -> None:
    """Set the visitor's vote on an issue; 0 removes it."""
    key = {"repo_id": repo_id, "number": number, "signal": signal, "visitor": visitor}
    if value:
        upsert(session, VOTE, [{**key, "value": value, "voted_at": datetime.now(UTC)}], keys=tuple(key))
    else:
        session.connection().execute(delete(VOTE).filter_by(**key))


def count_votes(session: Session, repo_id: int, number: int) -> dict[str, tuple[int, int]]:
    """Return (upvotes, downvotes) for each signal that has votes."""
    query = """
        SELECT signal, count(*) FILTER (WHERE value = 1), count(*) FILTER (WHERE value = -1) FROM vote
        WHERE repo_id = :repo_id AND number = :number GROUP BY signal
    """
    rows = sql_rows(session, query, repo_id=repo_id, number=number)
    return {signal: (for_it, against) for signal, for_it, against in rows}


def votes_by(session: Session, repo_id: int, number: int, visitor: str) -> dict[str, int]:
    query = select(_VOTE.signal, _VOTE.value).filter_by(repo_id=repo_id, number=number, visitor=visitor)
    return dict(iter(session.connection().execute(query)))


def sum_votes(session: Session, repo_id: int, numbers: Sequence[int], signal: str) -> dict[int, int]:
    """Return upvotes minus downvotes by issue number, for issues with votes."""
    query = select(_VOTE.number, func.sum(_VOTE.value)).group_by(_VOTE.number)
    rows = rows_in_parts(session, query.filter_by(repo_id=repo_id, signal=signal), _VOTE.number, numbers)
    return {number: int(value) for number, value in rows}


@dataclass(frozen=True, slots=True)
class RemedyBallot:
    """A visitor's vote on a remedy; `origin` is shared by all visitors of one network address."""

    number: int
    remedy: str
    visitor: str
    origin: str
    value: int


def save_remedy_vote(session: Session, repo_id: int, ballot: RemedyBallot) -> None:
    """Set the visitor's vote on a remedy; 0 removes it."""
    row = {"repo_id": repo_id, **asdict(ballot)}
    keys = ("repo_id", "number", "remedy", "visitor")
    if ballot.value:
        upsert(session, REMEDY_VOTE, [{**row, "voted_at": datetime.now(UTC)}], keys=keys)
    else:
        session.connection().execute(delete(REMEDY_VOTE).filter_by(**{key: row[key] for key in keys}))


def remedy_ballots(session: Session, repo_id: int, numbers: Sequence[int]) -> list[RemedyBallot]:
    """Return all votes on the remedies of these issues."""
    columns = _REMEDY.remedy, _REMEDY.visitor, _REMEDY.origin, _REMEDY.value
    rows = rows_with(session, repo_id, _REMEDY.number, numbers, *columns)
    return [RemedyBallot(*row) for row in rows]
