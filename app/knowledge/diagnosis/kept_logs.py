"""Keeping a log and its answer at its owner's wish: masked, for some days, with a link that deletes it.

Of the secret in the delete link only a hash is stored. Who knows a log's id may read it, who knows the secret
may delete it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.errors import NotFoundError, TriageError
from app.knowledge.diagnosis.diagnose import DiagnosedLog
from app.knowledge.diagnosis.shapes import Diagnosis, MatchLine
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


def keep_log(store: Store, found: DiagnosedLog, *, days: int, yours: str | None = None) -> Kept:
    """Keep a log, its answer and the caller's version for some days; delete those whose time is over.

    Raises:
        NoRoomError: too many are kept already.
    """
    now = datetime.now(UTC)
    kept = Kept(secrets.token_hex(16), secrets.token_hex(16), now + timedelta(days=days))
    record = KeptLogRecord(
        id=kept.id,
        delete_key=_hash(kept.delete_secret),
        log=_shortened(found.masked_log),
        answer={
            "diagnosis": found.diagnosis.model_dump(mode="json"),
            "excerpt": [line.model_dump() for line in found.excerpt],
            "line_count": count_lines(found.masked_log),
            "yours": yours,
        },
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
        excerpt=tuple(map(_excerpt_line, answer["excerpt"])),
        yours=answer["yours"],
        kept_at=record.kept_at,
        expires_at=record.expires_at,
    )


def _excerpt_line(line: dict[str, Any]) -> MatchLine:
    """A stored line; versions before this one stored the role `hot` or `dim`, and a remark on a wrapper."""
    role = "error" if line["role"] == "hot" else line["role"]
    role = ("wrapper" if line.get("remark") else "before") if role == "dim" else role
    return MatchLine(number=line["number"], text=line["text"], role=role)


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
