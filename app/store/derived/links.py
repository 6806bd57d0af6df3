"""Links that no text of an issue names: those that GitHub lists, and those of issues that are alike.

A link of likeness stands in the rows of both its issues, so that either is read with its own rows. Those with
issues of other repositories are counted apart, so that they take no place from the links of the own one.

What each issue is compared by is kept packed, so that a pair is weighed without reading its texts again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Select, delete, func, select, tuple_
from sqlmodel import Session

from app.store.engine.connect import rows_in_parts, rows_with, take_turn, upsert
from app.store.records import LinkRecord, Pair, pair_of
from app.store.session import remembered
from app.store.tables import LINK, PAIR_VIEW, REPOSITORY

SIMILAR = "similar"
ROWS_PER_DELETE = 300
"""Three values each."""

Links = Mapping[int, Sequence[LinkRecord]]
"""Issue number to its links."""

_TABLE, _LINK = LINK, LINK.c
_NAMES = select(*REPOSITORY.c["id", "full_name"])


def save_links(
    session: Session, repo_id: int, number: int, links: Iterable[LinkRecord], *, kind: str
) -> None:
    """Replace the links of one kind that a stored issue has; reading the issue again leaves them."""
    take_turn(session)
    session.connection().execute(
        delete(_TABLE).where(_LINK.repo_id == repo_id, _LINK.number == number, _LINK.kind == kind)
    )
    _insert(
        session, [_row(repo_id, number, link.target_repo, link.target_number, link, kind) for link in links]
    )


def find_repositories(session: Session) -> dict[int, str]:
    """Key to name of every repository that is stored; a session that only reads asks once."""
    return remembered(
        session, "repositories", lambda: {row[0]: row[1] for row in session.connection().execute(_NAMES)}
    )


def find_similar(
    session: Session, repo_id: int, repo: str, numbers: Collection[int], *, across: bool = False
) -> dict[int, list[LinkRecord]]:
    """The links of likeness of these issues, the likest first: within their repository or `across`."""
    columns = (_LINK.target_repo, _LINK.target_number, _LINK.kind, _LINK.reason, _LINK.score, _LINK.channel)
    query = _similar(select(_LINK.number, *columns), repo_id, repo, across).order_by(
        _LINK.number, _LINK.score.desc(), _LINK.target_repo, _LINK.target_number
    )
    found: dict[int, list[LinkRecord]] = {}
    for number, *link in rows_in_parts(session, query, _LINK.number, numbers):
        found.setdefault(number, []).append(LinkRecord(*link))
    return found


def find_likeness(
    session: Session, repo_id: int, repo: str, numbers: Collection[int], *, least: float
) -> dict[Pair, float]:
    """The scores of the links of these issues within their repository, of those not below `least`."""
    query = select(_LINK.number, _LINK.target_number, _LINK.score).where(_LINK.score >= least)
    rows = rows_in_parts(session, _similar(query, repo_id, repo, False), _LINK.number, numbers)
    return {pair_of(one, two): score for one, two, score in rows}


def _similar(query: Select[Any], repo_id: int, repo: str, across: bool) -> Select[Any]:
    target = _LINK.target_repo != repo if across else _LINK.target_repo == repo
    return query.where(_LINK.repo_id == repo_id, _LINK.kind == SIMILAR, target)


def replace_similar(
    session: Session, repo_id: int, repo: str, links: Links, *, most: int, across: bool = False
) -> list[tuple[Pair, float]]:
    """Replace the links of likeness of these issues, at both ends of each.

    Args:
        links: the other end of each gets the same one, turned round. All lead to issues of the same
            repository; with `across` to others, and one of which nothing is stored is left out.
        most: how many an issue may have; of more the weakest go, at both ends.

    Returns:
        The numbers at both ends and the score of each link that was removed or written.
    """
    keys = {name: key for key, name in find_repositories(session).items()}
    removed = find_similar(session, repo_id, repo, links, across=across)
    _remove(session, keys, repo, removed)
    written = {
        number: [link for link in found if link.target_repo in keys and (link.target_repo != repo) == across]
        for number, found in sorted(links.items())
    }
    rows = {}
    ends: dict[str, set[int]] = {repo: set(links)}
    for number, found in written.items():
        for link in found:
            there = link.target_repo, link.target_number
            rows[(repo, number, *there)] = _row(repo_id, number, *there, link)
            rows[(*there, repo, number)] = _row(
                keys[link.target_repo], link.target_number, repo, number, link
            )
            ends.setdefault(link.target_repo, set()).add(link.target_number)
    _insert(session, list(rows.values()))
    changed = [removed, written]
    for name, numbers in sorted(ends.items()):
        count = _similar(select(_LINK.number), keys[name], name, across).group_by(_LINK.number)
        overfull = rows_in_parts(session, count.having(func.count() > most), _LINK.number, numbers)
        linked = find_similar(session, keys[name], name, [row[0] for row in overfull], across=across)
        weakest = {number: own[most:] for number, own in linked.items()}
        _remove(session, keys, name, weakest)
        changed.append(weakest)
    return [
        (pair_of(number, link.target_number), link.score or 0.0)
        for part in changed
        for number, found in part.items()
        for link in found
    ]


def _remove(session: Session, keys: Mapping[str, int], repo: str, links: Links) -> None:
    """Remove these links of likeness of a repository's issues, at both ends."""
    rows: dict[tuple[str, str], set[Pair]] = {}
    for number, found in links.items():
        for link in found:
            rows.setdefault((repo, link.target_repo), set()).add((number, link.target_number))
            rows.setdefault((link.target_repo, repo), set()).add((link.target_number, number))
    for (name, target), ends in sorted(rows.items()):
        pairs = sorted(ends) if name in keys else []
        for start in range(0, len(pairs), ROWS_PER_DELETE):
            part = pairs[start : start + ROWS_PER_DELETE]
            session.connection().execute(
                delete(_TABLE).where(
                    _LINK.repo_id == keys[name],
                    _LINK.kind == SIMILAR,
                    _LINK.target_repo == target,
                    # By number first: by the pair alone, SQLite would read all links of the repository.
                    _LINK.number.in_(sorted({number for number, _ in part})),
                    tuple_(_LINK.number, _LINK.target_number).in_(part),
                )
            )


def _row(
    repo_id: int, number: int, target_repo: str, target: int, link: LinkRecord, kind: str = SIMILAR
) -> dict[str, Any]:
    ends = {"repo_id": repo_id, "number": number, "target_repo": target_repo, "target_number": target}
    return asdict(link) | ends | {"kind": kind}


def _insert(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    upsert(session, _TABLE, rows, keys=("repo_id", "number", "target_repo", "target_number", "kind"))


def save_packed_features(
    session: Session, repo_id: int, packed: Mapping[int, bytes], *, version: str
) -> set[int]:
    """Keep these; the numbers of those that are others than were kept, or were made by another version."""
    columns = PAIR_VIEW.c["number", "version", "packed"]
    kept = {row[0]: tuple(row[1:]) for row in rows_with(session, repo_id, columns[0], packed, *columns[1:])}
    changed = {number for number, item in packed.items() if kept.get(number) != (version, item)}
    rows = [
        {"repo_id": repo_id, "number": number, "version": version, "packed": packed[number]}
        for number in sorted(changed)
    ]
    upsert(session, PAIR_VIEW, rows, keys=("repo_id", "number"))
    return changed


def find_packed_features(session: Session, repo_id: int, numbers: Iterable[int]) -> dict[int, bytes]:
    """The kept features of these issues, packed."""
    return dict(rows_with(session, repo_id, PAIR_VIEW.c.number, numbers, PAIR_VIEW.c.packed))
