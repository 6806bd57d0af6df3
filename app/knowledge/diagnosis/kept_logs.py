"""Keeping a log and its answer, at its owner's wish: masked, for some days, with a link that deletes it.

In: a log and its diagnosis. Out: the id of its page and the secret of its delete link; of the secret only
a hash is stored. Who knows the id may read, who knows the secret may delete.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from app.errors import NotFoundError, TriageError
from app.extract.redaction.redact import redact
from app.knowledge.diagnosis.excerpts import ExcerptLine
from app.knowledge.diagnosis.log_input import clean_log
from app.knowledge.diagnosis.shapes import Diagnosis
from app.store.people.kept_logs import (
    KeptLogRecord,
    add_kept_log,
    count_kept_logs,
    delete_kept_log,
    find_kept_log,
    purge_kept_logs,
)
from app.store.session import Store

KEPT_CHARS = 1_000_000
"""What is kept of a log; of a longer one its start and its end."""
KEPT_HEAD_CHARS = 300_000
KEPT_LOGS_MAX = 5_000
"""With the largest logs some 5 GiB."""

_ID = re.compile(r"[0-9a-f]{32}")
_GONE = "There is no log at this address; its time may be over, or somebody deleted it."


class NoRoomError(TriageError):
    """As many logs are kept as may be."""

    status = 503


@dataclass(frozen=True, slots=True)
class Kept:
    """What the owner gets: the page's id, the secret that deletes it, the end of its time."""

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
    excerpt: tuple[ExcerptLine, ...]
    yours: str | None
    kept_at: datetime
    expires_at: datetime


def keep_log(
    store: Store,
    log: str,
    diagnosis: Diagnosis,
    excerpt: tuple[ExcerptLine, ...],
    *,
    days: int,
    yours: str | None = None,
) -> Kept:
    """Keep a log with its answer for some days; what is over goes at the same time.

    Args:
        yours: the version that the answer was seen from.

    Raises:
        NoRoomError: too many are kept already.
        StoreError: the archive cannot be written.
    """
    now = datetime.now(UTC)
    cleaned = clean_log(log)
    kept = Kept(secrets.token_hex(16), secrets.token_hex(16), now + timedelta(days=days))
    answer = {
        "diagnosis": diagnosis.model_dump(mode="json"),
        "excerpt": [asdict(line) for line in excerpt],
        "line_count": count_lines(cleaned),
        "yours": yours,
    }
    record = KeptLogRecord(
        id=kept.id,
        delete_key=_hash(kept.delete_secret),
        log=_shortened(redact(cleaned, private=True).text),
        answer=answer,
        kept_at=now,
        expires_at=kept.expires_at,
    )
    with store.unit_of_work() as session:
        purge_kept_logs(session, now)
        if count_kept_logs(session) >= KEPT_LOGS_MAX:
            raise NoRoomError("No more logs can be kept just now. Send this one without keeping it.")
        add_kept_log(session, record)
    return kept


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
        excerpt=tuple(ExcerptLine(**line) for line in answer["excerpt"]),
        yours=answer["yours"],
        kept_at=record.kept_at,
        expires_at=record.expires_at,
    )


def forget_log(store: Store, key: str, delete_secret: str) -> None:
    """Delete the log at an address.

    Raises:
        NotFoundError: there is none, or the secret is not that of its delete link.
    """
    with store.unit_of_work() as session:
        if not delete_kept_log(session, key, _hash(delete_secret)):
            raise NotFoundError(_GONE)


def count_lines(log: str) -> int:
    """How many lines a log has; a line end at the end begins none."""
    return log.count("\n") + (not log.endswith("\n"))


def _hash(secret: str) -> str:
    """The secret has 128 random bits: no salt and no slow hash are needed."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _shortened(log: str) -> str:
    """The start and the end of a long log, in whole lines where there are some."""
    if len(log) <= KEPT_CHARS:
        return log
    head = log[:KEPT_HEAD_CHARS]
    head = head[: head.rfind("\n") + 1] or head
    tail = log[-(KEPT_CHARS - KEPT_HEAD_CHARS) :]
    tail = tail[tail.find("\n") + 1 :] or tail
    between = log.count("\n") - head.count("\n") - tail.count("\n")
    return f"{head}\n[… {between:,} lines are not kept …]\n\n{tail}"
