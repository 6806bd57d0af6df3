"""Keep a masked log and its answer for some days if the user asks, with a delete link.

Anyone who knows a log's id can read it; anyone who knows the secret in its delete link can delete it. Only a
hash of the secret is stored.
"""

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from app.errors import NotFoundError, TriageError
from app.extract.facts import Frozen
from app.knowledge.diagnosis.diagnose import DiagnosedLog
from app.knowledge.diagnosis.shapes import Diagnosis, MatchLine
from app.store.people import (
    KeptLogRecord,
    add_kept_log,
    delete_kept_log,
    find_kept_log,
    make_secret,
    purge_kept_logs,
    sum_kept_logs,
)
from app.store.session import Store

KEPT_BYTES = 1_000_000
"""Maximum UTF-8 size of a kept log; a longer one is reduced to its start and end."""
KEPT_HEAD_BYTES = 300_000
KEPT_LOGS_MAX = 5_000
KEPT_TOTAL_BYTES = 5 << 30
CLIENT_SHARE = 50
"""A client may hold 1/50 of the free log count and of the free bytes: 99 logs in an empty store, fewer as
it fills up, so that heavy users are refused while others still find room."""

_KEY = "kept_logs"
_ID = re.compile(r"[0-9a-f]{32}")
_NOT_FOUND = "There is no log at this address; its time may be over, or somebody deleted it."


class NoRoomError(TriageError):
    """This client has reached its share of kept logs."""

    status = 429


@dataclass(frozen=True, slots=True)
class Kept:
    """The id of a kept log's page, the secret that deletes it, and its expiry."""

    id: str
    delete_secret: str
    expires_at: datetime


class KeptAnswer(Frozen):
    """What is stored beside a log; `line_count` counts the lines of the whole log."""

    diagnosis: Diagnosis
    excerpt: tuple[MatchLine, ...]
    line_count: int
    yours: str | None


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A kept log for its page."""

    id: str
    log: str
    answer: KeptAnswer
    kept_at: datetime
    expires_at: datetime


def keep_log(store: Store, found: DiagnosedLog, *, client: str, days: int, yours: str | None = None) -> Kept:
    """Keep a log, its answer and the caller's version for `days` days; delete expired logs.

    Args:
        client: identifies the client for its share; only a keyed hash is stored.

    Raises:
        NoRoomError: the client already keeps too many.
    """
    now = datetime.now(UTC)
    kept = Kept(secrets.token_hex(16), secrets.token_hex(16), now + timedelta(days=days))
    log = _shorten(found.masked_log)
    answer = KeptAnswer(
        diagnosis=found.diagnosis,
        excerpt=found.excerpt,
        line_count=count_lines(found.masked_log),
        yours=yours,
    ).model_dump(mode="json")
    with store.unit_of_work(changes=None) as session:
        purge_kept_logs(session, now)
        owner = hmac.new(make_secret(session, _KEY), client.encode(), "sha256").hexdigest()
        record = KeptLogRecord(
            id=kept.id,
            delete_key=_hash(kept.delete_secret),
            log=log,
            answer=answer,
            kept_at=now,
            expires_at=kept.expires_at,
            owner=owner,
            size=len(log.encode()) + len(json.dumps(answer)),
        )
        _check_share(session, record)
        add_kept_log(session, record)
    return kept


def _check_share(session: Session, record: KeptLogRecord) -> None:
    logs, size = sum_kept_logs(session)
    own_logs, own_size = sum_kept_logs(session, record.owner)
    most_logs = (KEPT_LOGS_MAX - logs) / CLIENT_SHARE
    most_bytes = (KEPT_TOTAL_BYTES - size) / CLIENT_SHARE
    if own_logs >= most_logs or own_size + (record.size or 0) > most_bytes:
        raise NoRoomError(
            "No more logs of yours can be kept. Delete one, or send this one without keeping it."
        )


def view_kept_log(store: Store, key: str) -> KeptLog:
    """Return the kept log with this id.

    Raises:
        NotFoundError: it never existed, has expired or was deleted.
    """
    with store.reading() as session:
        record = find_kept_log(session, key, datetime.now(UTC)) if _ID.fullmatch(key) else None
    if record is None:
        raise NotFoundError(_NOT_FOUND)
    answer = KeptAnswer.model_validate(record.answer)
    return KeptLog(record.id, record.log, answer, record.kept_at, record.expires_at)


def forget_log(store: Store, key: str, delete_secret: str) -> None:
    """Delete the kept log with this id.

    Raises:
        NotFoundError: there is none, or the secret is wrong.
    """
    with store.unit_of_work(changes=None) as session:
        if not _ID.fullmatch(key) or not delete_kept_log(session, key, _hash(delete_secret)):
            raise NotFoundError(_NOT_FOUND)
    store.erase_deleted()


def count_lines(log: str) -> int:
    """Count a log's lines; a final line break does not start another."""
    return log.count("\n") + (not log.endswith("\n"))


def _hash(secret: str) -> str:
    """Hash a secret; its 128 random bits need no salt or slow hash."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _shorten(log: str) -> str:
    """Reduce a long log to its start and end, in whole lines.

    The log must be masked first: half of a key would not be recognised as one.
    """
    content = log.encode()
    if len(content) <= KEPT_BYTES:
        return log
    head = content[:KEPT_HEAD_BYTES].decode(errors="ignore").rpartition("\n")[0]
    tail = content[KEPT_HEAD_BYTES - KEPT_BYTES :].decode(errors="ignore").partition("\n")[2]
    between = log.count("\n") - head.count("\n") - tail.count("\n") - 1
    return f"{head}\n\n[… {between:,} lines are not kept …]\n\n{tail}"
