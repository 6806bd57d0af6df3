"""Links that no single text tells: those that GitHub tells, and those of issues that are alike.

A link of likeness stands in the rows of both its issues, so that either is read with its own rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import delete, func, or_
from sqlmodel import Session, col, select

from app.store.dialect import take_turn, upsert
from app.store.records import LinkRecord
from app.store.tables import LinkRow, metadata

SIMILAR = "similar"
KEYS_PER_QUERY = 900
"""Stays below the number of bound values that every SQLite build takes."""


def save_links(
    session: Session, repo_id: int, number: int, links: Iterable[LinkRecord], *, kind: str
) -> None:
    """Replace the links of one kind that a stored issue has; reading the issue again leaves them."""
    take_turn(session)
    session.connection().execute(
        delete(LinkRow).where(
            col(LinkRow.repo_id) == repo_id, col(LinkRow.number) == number, col(LinkRow.kind) == kind
        )
    )
    rows = [
        {
            "repo_id": repo_id, "number": number, "target_repo": link.target_repo,
            "target_number": link.target_number, "kind": kind, "score": link.score,
            "channel": link.channel, "reason": link.reason,
        }
        for link in links
    ]  # fmt: skip
    keys = ("repo_id", "number", "target_repo", "target_number", "kind")
    upsert(session, metadata.tables["link"], rows, keys=keys)


def find_similar(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int]
) -> dict[int, list[LinkRecord]]:
    """The links of likeness of these issues within their repository, the likest first."""
    query = (
        select(LinkRow)
        .where(
            LinkRow.repo_id == repo_id, col(LinkRow.number).in_(list(numbers)),
            LinkRow.kind == SIMILAR, LinkRow.target_repo == repo,
        )
        .order_by(col(LinkRow.number), col(LinkRow.score).desc(), col(LinkRow.target_number))
    )  # fmt: skip
    found: dict[int, list[LinkRecord]] = {}
    for row in session.exec(query):
        link = LinkRecord(row.target_repo, row.target_number, row.kind, row.reason, row.score, row.channel)
        found.setdefault(row.number, []).append(link)
    return found


def replace_similar(
    session: Session,
    repo_id: int,
    repo: str,
    links: Mapping[int, Sequence[LinkRecord]],
    *,
    most: int,
) -> None:
    """Replace the links of likeness of these issues, at both ends of each.

    Args:
        links: issue number to its links; the other end gets the same one, turned round.
        most: how many an issue may have; of more the weakest go, at both ends.
    """
    _remove(session, repo_id, repo, list(links))
    pairs: dict[tuple[int, int], LinkRecord] = {}
    for number, found in links.items():
        for link in found:
            pairs[min(number, link.target_number), max(number, link.target_number)] = link
    rows = [
        {
            "repo_id": repo_id, "number": number, "target_repo": repo, "target_number": other,
            "kind": SIMILAR, "score": link.score, "channel": link.channel, "reason": link.reason,
        }
        for (one, two), link in sorted(pairs.items())
        for number, other in ((one, two), (two, one))
    ]  # fmt: skip
    keys = ("repo_id", "number", "target_repo", "target_number", "kind")
    upsert(session, metadata.tables["link"], rows, keys=keys)
    _trim(session, repo_id, repo, sorted({number for pair in pairs for number in pair}), most)


def _remove(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> None:
    ours = col(LinkRow.repo_id) == repo_id, col(LinkRow.kind) == SIMILAR
    for end in (
        col(LinkRow.number).in_(numbers),
        (col(LinkRow.target_repo) == repo) & col(LinkRow.target_number).in_(numbers),
    ):
        session.connection().execute(delete(LinkRow).where(*ours, end))


def _trim(session: Session, repo_id: int, repo: str, numbers: Sequence[int], most: int) -> None:
    """Take the weakest links of issues that have too many; each is gone at both ends."""
    overfull: list[int] = []
    for start in range(0, len(numbers), KEYS_PER_QUERY):
        count = (
            select(LinkRow.number)
            .where(
                LinkRow.repo_id == repo_id, LinkRow.kind == SIMILAR,
                col(LinkRow.number).in_(numbers[start : start + KEYS_PER_QUERY]),
            )
            .group_by(col(LinkRow.number))
            .having(func.count() > most)
        )  # fmt: skip
        overfull += session.exec(count)
    for number, found in sorted(find_similar(session, repo_id, repo, overfull).items()):
        weakest = [link.target_number for link in found[most:]]
        if weakest:
            session.connection().execute(
                delete(LinkRow).where(
                    col(LinkRow.repo_id) == repo_id, col(LinkRow.kind) == SIMILAR,
                    col(LinkRow.target_repo) == repo,
                    or_(
                        (col(LinkRow.number) == number) & col(LinkRow.target_number).in_(weakest),
                        (col(LinkRow.target_number) == number) & col(LinkRow.number).in_(weakest),
                    ),
                )
            )  # fmt: skip
