"""Links that no single text tells: those that GitHub tells, and those of issues that are alike.

A link of likeness stands in the rows of both its issues, so that either is read with its own rows.

Links of likeness between issues of two repositories: kept at both ends, apart from those within one.

An issue has few of them, so that they take no place from the links of its own repository.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import delete, func, tuple_
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.store.engine.connect import take_turn, upsert
from app.store.records import LinkRecord
from app.store.session import remembered
from app.store.tables import LinkRow, metadata

SIMILAR = "similar"
Pair = tuple[int, int]
"""Two issues, the lower number first."""
KEYS_PER_QUERY = 900
"""Stays below the number of bound values that every SQLite build takes."""
ROWS_PER_DELETE = 300
"""Three values each."""


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
            "repo_id": repo_id,
            "number": number,
            "target_repo": link.target_repo,
            "target_number": link.target_number,
            "kind": kind,
            "score": link.score,
            "channel": link.channel,
            "reason": link.reason,
        }
        for link in links
    ]
    keys = ("repo_id", "number", "target_repo", "target_number", "kind")
    upsert(session, metadata.tables["link"], rows, keys=keys)


def find_similar(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int]
) -> dict[int, list[LinkRecord]]:
    """The links of likeness of these issues within their repository, the likest first."""
    query = (
        select(LinkRow)
        .where(
            LinkRow.repo_id == repo_id,
            col(LinkRow.number).in_(list(numbers)),
            LinkRow.kind == SIMILAR,
            LinkRow.target_repo == repo,
        )
        .order_by(col(LinkRow.number), col(LinkRow.score).desc(), col(LinkRow.target_number))
    )
    found: dict[int, list[LinkRecord]] = {}
    for row in session.exec(query):
        link = LinkRecord(row.target_repo, row.target_number, row.kind, row.reason, row.score, row.channel)
        found.setdefault(row.number, []).append(link)
    return found


def find_likeness(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int], *, least: float = 0.0
) -> dict[Pair, float]:
    """The scores of the links of likeness of these issues that are as high as `least` or higher."""
    found: dict[Pair, float] = {}
    for start in range(0, len(numbers), KEYS_PER_QUERY):
        query = select(LinkRow.number, LinkRow.target_number, LinkRow.score).where(
            LinkRow.repo_id == repo_id,
            col(LinkRow.number).in_(numbers[start : start + KEYS_PER_QUERY]),
            LinkRow.kind == SIMILAR,
            LinkRow.target_repo == repo,
            col(LinkRow.score) >= least,
        )
        found |= {_pair(one, two): score for one, two, score in session.exec(query) if score is not None}
    return found


def replace_similar(
    session: Session,
    repo_id: int,
    repo: str,
    links: Mapping[int, Sequence[LinkRecord]],
    *,
    most: int,
) -> set[Pair]:
    """Replace the links of likeness of these issues, at both ends of each.

    Args:
        links: issue number to its links; the other end gets the same one, turned round.
        most: how many an issue may have; of more the weakest go, at both ends.

    Returns:
        The pairs that were linked or are, of which a link was removed or written.
    """
    removed = _remove(session, repo_id, repo, list(links))
    pairs: dict[tuple[int, int], LinkRecord] = {}
    for number, found in links.items():
        for link in found:
            pairs[min(number, link.target_number), max(number, link.target_number)] = link
    rows = [
        {
            "repo_id": repo_id,
            "number": number,
            "target_repo": repo,
            "target_number": other,
            "kind": SIMILAR,
            "score": link.score,
            "channel": link.channel,
            "reason": link.reason,
        }
        for (one, two), link in sorted(pairs.items())
        for number, other in ((one, two), (two, one))
    ]
    keys = ("repo_id", "number", "target_repo", "target_number", "kind")
    upsert(session, metadata.tables["link"], rows, keys=keys)
    trimmed = _trim(session, repo_id, repo, sorted({number for pair in pairs for number in pair}), most)
    return removed | trimmed | pairs.keys()


def _remove(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> set[Pair]:
    found = find_likeness(session, repo_id, repo, numbers)
    _unlink(session, repo_id, repo, found)
    return set(found)


def _unlink(session: Session, repo_id: int, repo: str, pairs: Iterable[Pair]) -> None:
    """Take the links of likeness of these pairs, at both ends."""
    targets: dict[int, list[int]] = {}
    for one, two in pairs:
        targets.setdefault(one, []).append(two)
        targets.setdefault(two, []).append(one)
    rows = [(number, other) for number, others in sorted(targets.items()) for other in others]
    for start in range(0, len(rows), ROWS_PER_DELETE):
        part = rows[start : start + ROWS_PER_DELETE]
        session.connection().execute(
            delete(LinkRow).where(
                col(LinkRow.repo_id) == repo_id,
                col(LinkRow.kind) == SIMILAR,
                col(LinkRow.target_repo) == repo,
                # By number first: by the pair alone, SQLite would read all links of the repository.
                col(LinkRow.number).in_(sorted({number for number, _ in part})),
                tuple_(col(LinkRow.number), col(LinkRow.target_number)).in_(part),
            )
        )


def _pair(one: int, two: int) -> Pair:
    return min(one, two), max(one, two)


def _trim(session: Session, repo_id: int, repo: str, numbers: Sequence[int], most: int) -> set[Pair]:
    """Take the weakest links of issues that have too many; each is gone at both ends. Returns the pairs."""
    overfull: list[int] = []
    for start in range(0, len(numbers), KEYS_PER_QUERY):
        count = (
            select(LinkRow.number)
            .where(
                LinkRow.repo_id == repo_id,
                LinkRow.kind == SIMILAR,
                LinkRow.target_repo == repo,
                col(LinkRow.number).in_(numbers[start : start + KEYS_PER_QUERY]),
            )
            .group_by(col(LinkRow.number))
            .having(func.count() > most)
        )
        overfull += session.exec(count)
    trimmed: set[Pair] = set()
    for number, found in sorted(find_similar(session, repo_id, repo, overfull).items()):
        weakest = [link.target_number for link in found[most:]]
        trimmed |= {_pair(number, other) for other in weakest}
    _unlink(session, repo_id, repo, trimmed)
    return trimmed


_NAMES = sql_select(*metadata.tables["repository"].c["id", "full_name"])
_KEYS = ("repo_id", "number", "target_repo", "target_number", "kind")


def find_across(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int]
) -> dict[int, list[LinkRecord]]:
    """The links of likeness of these issues that lead to other repositories, the likest first."""
    found: dict[int, list[LinkRecord]] = {}
    for start in range(0, len(numbers), KEYS_PER_QUERY):
        query = (
            select(LinkRow)
            .where(
                LinkRow.repo_id == repo_id,
                LinkRow.kind == SIMILAR,
                LinkRow.target_repo != repo,
                col(LinkRow.number).in_(numbers[start : start + KEYS_PER_QUERY]),
            )
            .order_by(
                col(LinkRow.number),
                col(LinkRow.score).desc(),
                col(LinkRow.target_repo),
                col(LinkRow.target_number),
            )
        )
        for row in session.exec(query):
            link = LinkRecord(
                row.target_repo, row.target_number, row.kind, row.reason, row.score, row.channel
            )
            found.setdefault(row.number, []).append(link)
    return found


def replace_across(
    session: Session, repo_id: int, repo: str, links: Mapping[int, Sequence[LinkRecord]], *, most: int
) -> None:
    """Replace the links of likeness that these issues have with other repositories, at both ends of each.

    Args:
        links: issue number to its links; the other end gets the same one, turned round. A link to a
            repository of which nothing is stored is left out.
        most: how many of them an issue may have; of more the weakest go, at both ends.
    """
    names = {name: key for key, name in find_repositories(session).items()}
    old = find_across(session, repo_id, repo, sorted(links))
    _unlink_links_across(
        session, repo_id, repo, names, ((number, link) for number in old for link in old[number])
    )
    rows: list[dict[str, object]] = []
    for number, found in sorted(links.items()):
        for link in found:
            if link.target_repo == repo or link.target_repo not in names:
                continue
            said = {"kind": SIMILAR, "score": link.score, "channel": link.channel, "reason": link.reason}
            there = {"target_repo": link.target_repo, "target_number": link.target_number}
            rows.append({"repo_id": repo_id, "number": number, **there, **said})
            back = {"repo_id": names[link.target_repo], "number": link.target_number}
            rows.append({**back, "target_repo": repo, "target_number": number, **said})
    upsert(session, metadata.tables["link"], rows, keys=_KEYS)
    ends: dict[str, set[int]] = {repo: set(links)}
    for link in (link for found in links.values() for link in found if link.target_repo in names):
        ends.setdefault(link.target_repo, set()).add(link.target_number)
    for name, numbers in sorted(ends.items()):
        _trim_links_across(session, name, names, numbers, most)


def find_repositories(session: Session) -> dict[int, str]:
    """Key to name of every repository that is stored; a session that only reads asks once."""
    return remembered(
        session, "repositories", lambda: {row[0]: row[1] for row in session.connection().execute(_NAMES)}
    )


def _unlink_links_across(
    session: Session,
    repo_id: int,
    repo: str,
    names: Mapping[str, int],
    links: Iterable[tuple[int, LinkRecord]],
) -> None:
    """Take these links, which are few, at both ends."""
    for number, link in links:
        ends = [(repo_id, number, link.target_repo, link.target_number)]
        if link.target_repo in names:
            ends.append((names[link.target_repo], link.target_number, repo, number))
        for key, source, target_repo, target in ends:
            session.connection().execute(
                delete(LinkRow).where(
                    col(LinkRow.repo_id) == key,
                    col(LinkRow.number) == source,
                    col(LinkRow.target_repo) == target_repo,
                    col(LinkRow.target_number) == target,
                    col(LinkRow.kind) == SIMILAR,
                )
            )


def _trim_links_across(
    session: Session, repo: str, names: Mapping[str, int], numbers: Collection[int], most: int
) -> None:
    """Take the weakest links of issues that have too many."""
    asked = sorted(numbers)
    overfull: list[int] = []
    for start in range(0, len(asked), KEYS_PER_QUERY):
        count = (
            select(LinkRow.number)
            .where(
                LinkRow.repo_id == names[repo],
                LinkRow.kind == SIMILAR,
                LinkRow.target_repo != repo,
                col(LinkRow.number).in_(asked[start : start + KEYS_PER_QUERY]),
            )
            .group_by(col(LinkRow.number))
            .having(func.count() > most)
        )
        overfull += session.exec(count)
    found = find_across(session, names[repo], repo, sorted(overfull))
    _unlink_links_across(
        session,
        names[repo],
        repo,
        names,
        ((number, link) for number, told in found.items() for link in told[most:]),
    )
