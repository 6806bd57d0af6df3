"""Embedding vectors of issues: save, find, and list those that are missing or outdated."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import numpy as np
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.store.derived.search_index import Key, numbers_by_repository
from app.store.engine.connect import rows_with, sql_rows, upsert
from app.store.tables import ISSUE_VECTOR

_TABLE = ISSUE_VECTOR.c
_LARGEST = 127


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
    rows = rows_with(session, repo_id, _TABLE.number, numbers, _TABLE.digest, _TABLE.model)
    return {number: digest for number, digest, of in rows if of == model}


def note_same(session: Session, repo_id: int, numbers: Sequence[int]) -> None:
    """Record that the texts of these issues have not changed since they were embedded."""
    is_it = (_TABLE.repo_id == repo_id) & _TABLE.number.in_(numbers)
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
