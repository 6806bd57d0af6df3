"""The search index: postings, document frequencies, and each issue's term profile.

A term's id is the first 8 bytes of a hash of its channel and text, so writers need no lookup and
both engines agree. A profile packs all terms of an issue with their counts: first the ids as
little-endian int64, then the counts as little-endian uint16. A count of 0 marks a term that is searchable
but not part of the text, so it does not count towards the text's length.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.engine.connect import (
    delete_with,
    joined,
    lock_writers,
    parse_joined,
    run_many,
    sql_rows,
    upsert,
)
from app.store.tables import POSTING, PROFILE, TERM

BYTES_PER_TERM = 10
COUNT_MAX = 65_535
_NONE = np.empty(0, dtype=np.int64)
Key = tuple[int, int]
"""Repository key and issue number."""


@dataclass(frozen=True, slots=True)
class Profile:
    """All terms of one issue: ids (int64, sorted) and counts (uint16)."""

    ids: np.ndarray
    counts: np.ndarray

    @property
    def length(self) -> int:
        """The number of distinct terms in the text."""
        return int(np.count_nonzero(self.counts))


def hash_terms(terms: Mapping[tuple[int, str], int]) -> Profile:
    """Return the profile of counted terms, given as (channel, text)."""
    by_id = {term_id(*term): min(count, COUNT_MAX) for term, count in terms.items()}
    ids = sorted(by_id)
    return Profile(np.array(ids, dtype="<i8"), np.array([by_id[key] for key in ids], dtype="<u2"))


NO_TERMS = Profile(np.empty(0, dtype="<i8"), np.empty(0, dtype="<u2"))


def term_id(channel: int, text: str) -> int:
    """Return the id of a term: a signed 64-bit hash of its channel and text."""
    digest = hashlib.blake2b(f"{channel}\x00{text}".encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def index_terms(session: Session, repo_id: int, terms_of: Mapping[int, Profile]) -> None:
    """Replace the indexed terms of these issues; `terms_of` maps issue numbers to profiles."""
    lock_writers(session)
    stored = find_profiles(session, [(repo_id, number) for number in terms_of])
    added, removed = [_NONE], [_NONE]
    postings: list[tuple[int, int, int]] = []
    for number, new in terms_of.items():
        old = stored.get((repo_id, number), NO_TERMS).ids
        gone = np.setdiff1d(old, new.ids, assume_unique=True)
        delete_with(session, repo_id, POSTING.c.term_id, gone.tolist(), POSTING.c.number == number)
        removed.append(gone)
        added.append(np.setdiff1d(new.ids, old, assume_unique=True))
        postings += [(key, repo_id, number) for key in added[-1].tolist()]
    _change_frequencies(session, np.concatenate(added), np.concatenate(removed))
    run_many(session, "INSERT INTO posting (term_id, repo_id, number) VALUES (?, ?, ?)", sorted(postings))
    rows = [
        {"repo_id": repo_id, "number": number, "terms": item.ids.tobytes() + item.counts.tobytes()}
        for number, item in terms_of.items()
    ]
    upsert(session, PROFILE, rows, keys=("repo_id", "number"))


def _change_frequencies(session: Session, added: np.ndarray, removed: np.ndarray) -> None:
    # Sorted by id, so that concurrent writers cannot deadlock.
    ids, at = np.unique(np.concatenate([added, removed]), return_inverse=True)
    by = np.bincount(at, np.repeat((1, -1), (len(added), len(removed))), len(ids)).astype(int)
    statement = (
        "INSERT INTO term (id, df) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET df = term.df + excluded.df"
    )
    run_many(session, statement, list(zip(ids[by != 0].tolist(), by[by != 0].tolist(), strict=True)))


def _unpack(packed: bytes) -> Profile:
    size = len(packed) // BYTES_PER_TERM
    return Profile(
        np.frombuffer(packed, dtype="<i8", count=size), np.frombuffer(packed, dtype="<u2", offset=8 * size)
    )


def numbers_by_repository(keys: Iterable[Key]) -> dict[int, list[int]]:
    """Group issue numbers by repository key, keeping their order."""
    found: dict[int, list[int]] = {}
    for repo_id, number in keys:
        found.setdefault(repo_id, []).append(number)
    return found


def find_profiles(session: Session, keys: Sequence[Key]) -> dict[Key, Profile]:
    found: dict[Key, Profile] = {}
    for repo_id, numbers in numbers_by_repository(keys).items():
        query = "SELECT number, terms FROM profile WHERE repo_id = :repo_id AND number IN :numbers"
        rows = sql_rows(session, query, repo_id=repo_id, numbers=numbers)
        found |= {(repo_id, number): _unpack(packed) for number, packed in rows}
    return found


def find_frequencies(session: Session, term_ids: Sequence[int]) -> dict[int, int]:
    """Return the document frequency of each term; unknown terms are left out."""
    # In one row: for each further row the driver releases the GIL and competes with other threads for it.
    columns = f"{joined(session, 'id')}, {joined(session, 'df')}"
    rows = sql_rows(session, f"SELECT {columns} FROM term WHERE df > 0 AND id IN :ids", ids=list(term_ids))
    ids, counts = map(parse_joined, rows[0]) if rows else (_NONE, _NONE)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def find_common(session: Session, *, least: int) -> dict[int, int]:
    """Return the document frequencies of all terms in at least `least` issues, by term id."""
    rows = session.connection().execute(select(TERM.c.id, TERM.c.df).where(TERM.c.df >= least))
    return {row.id: row.df for row in rows}


def find_postings(session: Session, term_ids: Sequence[int]) -> np.ndarray:
    """Return the postings of these terms, as int64 rows (term id, repository key, issue number) by term."""
    # A term's issues come as one text: a third of the time of one row each; see also find_frequencies.
    query = f"""
        SELECT term_id, repo_id, {joined(session, "number")} FROM posting WHERE term_id IN :ids
        GROUP BY term_id, repo_id ORDER BY term_id
    """
    rows = sql_rows(session, query, ids=list(term_ids))
    heads = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
    counts = [row[2].count(",") + 1 for row in rows]
    numbers = parse_joined(",".join(row[2] for row in rows))
    return np.column_stack([np.repeat(heads, counts, axis=0), numbers])


def count_indexed(session: Session) -> int:
    """Return the number of indexed issues."""
    count: int = sql_rows(session, "SELECT count(*) FROM profile")[0][0]
    return count
