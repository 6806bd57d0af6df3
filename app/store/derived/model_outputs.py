"""What the operator's models returned: raw replies of the model reader, and embedding vectors of issues.

A reply's key includes the digest of the prompted text, the model and the prompt version, so nothing is asked
twice; of several on one issue the newest counts. A reply with the outcome "failed" (a server error) is
retried a day later.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
from sqlalchemy import tuple_, update
from sqlalchemy.orm import Session

from app.store.derived.search_index import Key, numbers_by_repository
from app.store.engine.connect import rows_with, sql_rows, upsert
from app.store.github.presence import UNREAD, mark_unread
from app.store.tables import ISSUE_VECTOR, MODEL_REPLY

ReplyOutcome = Literal["complete", "cut", "invalid", "refused", "failed"]
FAILED_AGAIN = timedelta(days=1)
_KEYS = ("repo_id", "number", "digest", "model", "prompt_version")
_REPLY, _VECTOR = MODEL_REPLY.c, ISSUE_VECTOR.c
_LARGEST = 127


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A raw reply.

    Attributes:
        digest: hash of the prompted text, which had at most `chars_max` characters.
        reply: the raw reply, possibly truncated; empty if the server refused.
        kept: number of values proven by quotes.
        dropped: number of unproven values; `reasons` counts them by reason.
    """

    number: int
    digest: str
    model: str
    prompt_version: str
    outcome: ReplyOutcome
    reply: str
    chars_max: int
    prompt_tokens: int = 0
    reply_tokens: int = 0
    kept: int = 0
    dropped: int = 0
    reasons: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A complete reply, to be merged with the facts extracted by rules."""

    digest: str
    chars_max: int
    prompt_version: str
    reply: str


@dataclass(frozen=True, slots=True)
class ReplyCounts:
    """Progress of the model reader on a repository; `outcomes` counts replies, `tokens` is the total used."""

    outcomes: Mapping[str, int]
    kept: int
    dropped: int
    tokens: int


def save_replies(session: Session, repo_id: int, replies: Sequence[ModelReply]) -> None:
    """Insert or replace replies, and mark the issues with a complete one as unread."""
    now = datetime.now(UTC)
    rows = [
        {"repo_id": repo_id, "replied_at": now, "checked_at": now}
        | asdict(item)
        | {"reasons": dict(item.reasons or {})}
        for item in replies
    ]
    upsert(session, MODEL_REPLY, rows, keys=_KEYS)
    mark_unread(session, repo_id, [item.number for item in replies if item.outcome == "complete"])


def unmerged_numbers(session: Session, repo_id: int) -> list[int]:
    """Return issues with a complete reply whose facts were not derived again, as the run was killed."""
    query = """
        SELECT DISTINCT m.number FROM model_reply m
        LEFT JOIN reading r ON r.repo_id = m.repo_id AND r.number = m.number
        WHERE m.repo_id = :repo_id AND m.outcome = 'complete'
        AND (r.number IS NULL OR r.rules_version = :unread)
        ORDER BY m.number
    """
    return [number for (number,) in sql_rows(session, query, repo_id=repo_id, unread=UNREAD)]


def find_replies(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, KeptReply]:
    """Return the newest complete reply on each of these issues, for any version of their text."""
    query = """
        SELECT number, digest, chars_max, prompt_version, reply FROM model_reply
        WHERE repo_id = :repo_id AND number IN :numbers AND outcome = 'complete'
        ORDER BY replied_at, digest
    """
    rows = sql_rows(session, query, repo_id=repo_id, numbers=list(numbers))
    return {number: KeptReply(*values) for number, *values in rows}


def unread_numbers(session: Session, repo_id: int, model: str, prompt_version: str) -> list[int]:
    """Return issues that this model was not asked about since their text last changed; newest first."""
    query = """
        SELECT i.number FROM issue i
        WHERE i.repo_id = :repo_id AND i.is_pull_request = false AND i.gone_at IS NULL AND i.origin = 'github'
        AND NOT EXISTS (
            SELECT 1 FROM model_reply m
            WHERE m.repo_id = i.repo_id AND m.number = i.number AND m.model = :model
            AND m.prompt_version = :version AND m.checked_at >= i.fetched_at
            AND (m.outcome <> 'failed' OR m.replied_at > :lately)
            AND NOT EXISTS (
                SELECT 1 FROM comment c WHERE c.repo_id = i.repo_id AND c.issue_number = i.number
                AND c.fetched_at > m.checked_at))
        ORDER BY i.number DESC
    """
    lately = datetime.now(UTC) - FAILED_AGAIN
    rows = sql_rows(session, query, repo_id=repo_id, model=model, version=prompt_version, lately=lately)
    return [number for (number,) in rows]


def asked_digests(
    session: Session, repo_id: int, numbers: Sequence[int], model: str, prompt_version: str
) -> set[tuple[int, str]]:
    """Return (number, digest) of these issues' texts that have a reply from this model and prompt version."""
    query = """
        SELECT number, digest FROM model_reply WHERE repo_id = :repo_id AND number IN :numbers
        AND model = :model AND prompt_version = :version AND (outcome <> 'failed' OR replied_at > :lately)
    """
    lately = datetime.now(UTC) - FAILED_AGAIN
    bound: dict[str, Any] = {"model": model, "version": prompt_version, "lately": lately}
    rows = sql_rows(session, query, repo_id=repo_id, numbers=list(numbers), **bound)
    return {(number, digest) for number, digest in rows}


def note_unchanged(
    session: Session, repo_id: int, texts: Sequence[tuple[int, str]], model: str, prompt_version: str
) -> None:
    """Record that these texts, as (number, digest), were unchanged when stored again; replies stay valid."""
    is_it = (_REPLY.repo_id == repo_id) & (_REPLY.model == model) & (_REPLY.prompt_version == prompt_version)
    is_it &= tuple_(_REPLY.number, _REPLY.digest).in_(texts)
    session.connection().execute(update(MODEL_REPLY).where(is_it).values(checked_at=datetime.now(UTC)))


def count_replies(session: Session, repo_id: int) -> ReplyCounts:
    """Return the reply counts by outcome, with the sums of values and tokens."""
    query = """
        SELECT outcome, count(*), sum(kept), sum(dropped), sum(prompt_tokens + reply_tokens) FROM model_reply
        WHERE repo_id = :repo_id GROUP BY outcome ORDER BY outcome
    """
    rows = sql_rows(session, query, repo_id=repo_id)
    kept, dropped, tokens = (sum(int(row[at] or 0) for row in rows) for at in (2, 3, 4))
    return ReplyCounts({row[0]: row[1] for row in rows}, kept, dropped, tokens)


def last_model(session: Session, repo_id: int) -> str | None:
    query = "SELECT model FROM model_reply WHERE repo_id = :repo_id ORDER BY replied_at DESC LIMIT 1"
    rows = sql_rows(session, query, repo_id=repo_id)
    return str(rows[0][0]) if rows else None


def tokens_today(session: Session) -> int:
    """Return the tokens of all replies since midnight UTC, over all repositories."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    query = "SELECT sum(prompt_tokens + reply_tokens) FROM model_reply WHERE replied_at >= :since"
    found = sql_rows(session, query, since=midnight)
    return int(found[0][0] or 0)


@dataclass(frozen=True, slots=True)
class IssueVector:
    """An issue's vector of signed bytes; `digest` is the hash of the embedded text."""

    number: int
    digest: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class TextVector:
    """A text's vector of signed bytes, and the model that made it."""

    model: str
    vector: bytes


def as_bytes(values: Sequence[float]) -> bytes:
    """Quantize a vector to signed bytes, scaling the largest value to ±127; only the direction is kept."""
    vector = np.asarray(values, dtype=np.float32)
    return bytes(np.rint(vector * (_LARGEST / max(float(np.abs(vector).max()), 1e-12))).astype(np.int8))


def save_vectors(session: Session, repo_id: int, model: str, vectors: Sequence[IssueVector]) -> None:
    """Insert or replace the vectors of these issues."""
    now = datetime.now(UTC)
    rows = [{"repo_id": repo_id, "model": model, "checked_at": now, **asdict(item)} for item in vectors]
    upsert(session, ISSUE_VECTOR, rows, keys=("repo_id", "number"))


def unembedded_numbers(session: Session, repo_id: int, model: str) -> list[int]:
    """Return issues without a vector of this model or read since it was last checked; newest first."""
    query = """
        SELECT i.number FROM issue i
        JOIN reading r ON r.repo_id = i.repo_id AND r.number = i.number
        WHERE i.repo_id = :repo_id AND i.is_pull_request = false AND i.gone_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM issue_vector v WHERE v.repo_id = i.repo_id AND v.number = i.number
            AND v.model = :model AND v.checked_at >= r.read_at)
        ORDER BY i.number DESC
    """
    return [number for (number,) in sql_rows(session, query, repo_id=repo_id, model=model)]


def find_digests(session: Session, repo_id: int, numbers: Iterable[int], model: str) -> dict[int, str]:
    """Return the digest of the text behind each of these issues' vectors by this model."""
    rows = rows_with(session, repo_id, _VECTOR.number, numbers, _VECTOR.digest, _VECTOR.model)
    return {number: digest for number, digest, of in rows if of == model}


def note_same(session: Session, repo_id: int, numbers: Sequence[int]) -> None:
    """Record that the texts of these issues have not changed since they were embedded."""
    is_it = (_VECTOR.repo_id == repo_id) & _VECTOR.number.in_(numbers)
    session.connection().execute(update(ISSUE_VECTOR).where(is_it).values(checked_at=datetime.now(UTC)))


def find_vectors(session: Session, keys: Sequence[Key], model: str) -> dict[Key, np.ndarray]:
    """Return this model's vectors of these issues, as int8 arrays."""
    query = """
        SELECT number, vector FROM issue_vector
        WHERE repo_id = :repo_id AND number IN :numbers AND model = :model
    """
    return {
        (repo_id, number): np.frombuffer(vector, dtype=np.int8)
        for repo_id, numbers in numbers_by_repository(keys).items()
        for number, vector in sql_rows(session, query, repo_id=repo_id, numbers=numbers, model=model)
    }


def count_vectors(session: Session, repo_id: int) -> Mapping[str, int]:
    query = "SELECT model, count(*) FROM issue_vector WHERE repo_id = :repo_id GROUP BY model"
    return dict(sql_rows(session, query, repo_id=repo_id))
