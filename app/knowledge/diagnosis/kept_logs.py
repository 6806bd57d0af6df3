"""Keeping a log and its answer at its owner's wish: masked, for some days, with a link that deletes it.

Of the secret in the delete link only a hash is stored. Who knows a log's id may read it, who knows the secret
may delete it.
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
"""What is kept of a masked log, in UTF-8; of a longer one its start and its end."""
KEPT_HEAD_BYTES = 300_000
KEPT_LOGS_MAX = 5_000
KEPT_TOTAL_BYTES = 5 << 30
CLIENT_SHARE = 50
"""A client may hold the 50th part of the places, and of the bytes, that are still free: 99 logs of an empty
store, and fewer the fuller it is, so that who holds many is refused while others find room."""

_KEY = "kept_logs"
_ID = re.compile(r"[0-9a-f]{32}")
_GONE = "There is no log at this address; its time may be over, or somebody deleted it."


class NoRoomError(TriageError):
    """This client keeps as many logs as it may."""

    status = 429


@dataclass(frozen=True, slots=True)
class Kept:
    """The id of a kept log's page, the secret that deletes it, the end of its time."""

    id: str
    delete_secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A kept log as its page shows it; `line_count` is that of the whole log."""

    id: str
    log: str
    line_count: int
    diagnosis: Diagnosis
    excerpt: tuple[MatchLine, ...]
    yours: str | None
    kept_at: datetime
    expires_at: datetime


def keep_log(store: Store, found: DiagnosedLog, *, client: str, days: int, yours: str | None = None) -> Kept:
    """Keep a log, its answer and the caller's version for some days; delete those whose time is over.

    Args:
        client: counts for its share; it is hashed at once.

    Raises:
        NoRoomError: the client keeps too many already.
    """
    now = datetime.now(UTC)
    kept = Kept(secrets.token_hex(16), secrets.token_hex(16), now + timedelta(days=days))
    log = _shortened(found.masked_log)
    answer = {
        "diagnosis": found.diagnosis.model_dump(mode="json"),
        "excerpt": [line.model_dump() for line in found.excerpt],
        "line_count": count_lines(found.masked_log),
        "yours": yours,
    }
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
    """The log at an address.

    Raises:
        NotFoundError: there is none, or none any more.
    """
    with store.reading() as session:
        record = find_kept_log(session, key, datetime.now(UTC)) if _ID.fullmatch(key) else None
    if record is None:
        raise NotFoundError(_GONE)
    answer = record.answer
    return KeptLog(
        id=record.id,
        log=record.log,
        line_count=answer["line_count"],
        diagnosis=Diagnosis.model_validate(answer["diagnosis"]),
        excerpt=tuple(map(MatchLine.model_validate, answer["excerpt"])),
        yours=answer["yours"],
        kept_at=record.kept_at,
        expires_at=record.expires_at,
    )


def forget_log(store: Store, key: str, delete_secret: str) -> None:
    """Delete the log at an address.

    Raises:
        NotFoundError: there is none, or the secret is not that of its delete link.
    """
    with store.unit_of_work(changes=None) as session:
        if not _ID.fullmatch(key) or not delete_kept_log(session, key, _hash(delete_secret)):
            raise NotFoundError(_GONE)
    store.leave_no_trace()


def count_lines(log: str) -> int:
    """How many lines a log has; a line end at the end begins none."""
    return log.count("\n") + (not log.endswith("\n"))


def _hash(secret: str) -> str:
    """The secret has 128 random bits: no salt and no slow hash are needed."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _shortened(log: str) -> str:
    """The start and the end of a long log, in whole lines where there are some.

    It is masked already: half of a key would not be recognised as one.
    """
    content = log.encode()
    if len(content) <= KEPT_BYTES:
        return log
    head = content[:KEPT_HEAD_BYTES].decode(errors="ignore")
    head = head[: head.rfind("\n") + 1] or head
    tail = content[-(KEPT_BYTES - KEPT_HEAD_BYTES) :].decode(errors="ignore")
    tail = tail[tail.find("\n") + 1 :] or tail
    between = log.count("\n") - head.count("\n") - tail.count("\n")
    return f"{head}\n[… {between:,} lines are not kept …]\n\n{tail}"
