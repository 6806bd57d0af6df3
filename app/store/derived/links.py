"""Links not extracted from issue texts: those that GitHub lists, and links between similar issues.

A similarity link is stored in both directions, so that each issue's links are its own rows. Links to other
repositories have their own limit per issue, so that they do not displace links within the repository.

Each issue's comparison features are stored packed, so that pairs are scored without reading texts again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, select
from sqlalchemy.orm import Session

from app.store.engine.connect import delete_with, lock_writers, rows_in_parts, rows_with, upsert
from app.store.records import LinkRecord, Pair, pair_of
from app.store.tables import LINK, PAIR_VIEW, REPOSITORY

SIMILAR = "similar"
Links = Mapping[int, Sequence[LinkRecord]]
"""Issue number to its links."""

_LINK = LINK.c
_KEY = ("repo_id", "number", "target_repo", "target_number", "kind")


def save_links(
    session: Session, repo_id: int, number: int, links: Iterable[LinkRecord], *, kind: str
) -> None:
    """Replace a stored issue's links of one kind, which must not be an extracted one."""
    lock_writers(session)
    delete_with(session, repo_id, _LINK.number, [number], _LINK.kind == kind)
    rows = [_row(repo_id, number, link.target_repo, link.target_number, link, kind) for link in links]
    upsert(session, LINK, rows, keys=_KEY)


def find_repositories(session: Session) -> dict[int, str]:
    """Return the names of all stored repositories by key."""
    return dict(iter(session.connection().execute(select(*REPOSITORY.c["id", "full_name"]))))


def find_similar(
    session: Session, repo_id: int, repo: str, numbers: Collection[int], *, across: bool = False
) -> dict[int, list[LinkRecord]]:
    """Return these issues' similarity links, best first: to the same repository, or `across` to others."""
    columns = (_LINK[item.name] for item in fields(LinkRecord))
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
    """Return the scores, at least `least`, of these issues' similarity links within their repository."""
    query = select(_LINK.number, _LINK.target_number, _LINK.score).where(_LINK.score >= least)
    rows = rows_in_parts(session, _similar(query, repo_id, repo, False), _LINK.number, numbers)
    return {pair_of(one, two): score for one, two, score in rows}


def _similar(query: Select[Any], repo_id: int, repo: str, across: bool) -> Select[Any]:
    target = _LINK.target_repo != repo if across else _LINK.target_repo == repo
    return query.where(_LINK.repo_id == repo_id, _LINK.kind == SIMILAR, target)


def replace_similar(
    session: Session, repo_id: int, repo: str, links: Links, *, most: int, across: bool = False
) -> list[tuple[Pair, float]]:
    """Replace the similarity links of these issues, in both directions.

    Args:
        links: new links; the reverse of each is stored too. Their targets are in the same repository, or
            with `across` in others; links to repositories that are not stored are left out.
        most: maximum per issue, at either end; the weakest surplus links are deleted.

    Returns:
        The pair and score of each link that was removed or written.
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
            name, target = link.target_repo, link.target_number
            rows[repo, number, name, target] = _row(repo_id, number, name, target, link)
            rows[name, target, repo, number] = _row(keys[name], target, repo, number, link)
            ends.setdefault(name, set()).add(target)
    upsert(session, LINK, list(rows.values()), keys=_KEY)
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
    """Delete these similarity links of a repository's issues, in both directions."""
    rows = []
    for number, found in links.items():
        for link in found:
            ends = (repo, number), (link.target_repo, link.target_number)
            for (name, of), (target_repo, target) in (ends, ends[::-1]):
                if name in keys:
                    rows.append((keys[name], of, target_repo, target))
    if rows:
        names = [f"key_{at}" for at in range(4)]
        is_it = (_LINK[name] == bindparam(key) for name, key in zip(_KEY, names, strict=False))
        statement = delete(LINK).where(*is_it, _LINK.kind == SIMILAR)
        session.connection().execute(statement, [dict(zip(names, row, strict=True)) for row in rows])


def _row(
    repo_id: int, number: int, target_repo: str, target: int, link: LinkRecord, kind: str = SIMILAR
) -> dict[str, Any]:
    ends = {"repo_id": repo_id, "number": number, "target_repo": target_repo, "target_number": target}
    return asdict(link) | ends | {"kind": kind}


def save_packed_features(
    session: Session, repo_id: int, packed: Mapping[int, bytes], *, version: str
) -> set[int]:
    """Save packed features and return the numbers whose content or version changed."""
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
    """Return the stored packed features of these issues."""
    return dict(rows_with(session, repo_id, PAIR_VIEW.c.number, numbers, PAIR_VIEW.c.packed))
