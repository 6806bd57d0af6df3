"""Links of likeness between issues of two repositories: kept at both ends, apart from those within one.

An issue has few of them, so that they take no place from the links of its own repository.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import delete, func
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.store.dialect import upsert
from app.store.links import KEYS_PER_QUERY, SIMILAR
from app.store.records import LinkRecord
from app.store.session import remembered
from app.store.tables import LinkRow, metadata

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
                LinkRow.repo_id == repo_id, LinkRow.kind == SIMILAR, LinkRow.target_repo != repo,
                col(LinkRow.number).in_(numbers[start : start + KEYS_PER_QUERY]),
            )
            .order_by(
                col(LinkRow.number), col(LinkRow.score).desc(), col(LinkRow.target_repo),
                col(LinkRow.target_number),
            )
        )  # fmt: skip
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
    _unlink(session, repo_id, repo, names, ((number, link) for number in old for link in old[number]))
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
        _trim(session, name, names, numbers, most)


def find_repositories(session: Session) -> dict[int, str]:
    """Key to name of every repository that is stored; a session that only reads asks once."""
    return remembered(
        session, "repositories", lambda: {row[0]: row[1] for row in session.connection().execute(_NAMES)}
    )


def _unlink(
    session: Session, repo_id: int, repo: str, names: Mapping[str, int],
    links: Iterable[tuple[int, LinkRecord]],
) -> None:  # fmt: skip
    """Take these links, which are few, at both ends."""
    for number, link in links:
        ends = [(repo_id, number, link.target_repo, link.target_number)]
        if link.target_repo in names:
            ends.append((names[link.target_repo], link.target_number, repo, number))
        for key, source, target_repo, target in ends:
            session.connection().execute(
                delete(LinkRow).where(
                    col(LinkRow.repo_id) == key, col(LinkRow.number) == source,
                    col(LinkRow.target_repo) == target_repo, col(LinkRow.target_number) == target,
                    col(LinkRow.kind) == SIMILAR,
                )
            )  # fmt: skip


def _trim(
    session: Session, repo: str, names: Mapping[str, int], numbers: Collection[int], most: int
) -> None:
    """Take the weakest links of issues that have too many."""
    asked = sorted(numbers)
    overfull: list[int] = []
    for start in range(0, len(asked), KEYS_PER_QUERY):
        count = (
            select(LinkRow.number)
            .where(
                LinkRow.repo_id == names[repo], LinkRow.kind == SIMILAR, LinkRow.target_repo != repo,
                col(LinkRow.number).in_(asked[start : start + KEYS_PER_QUERY]),
            )
            .group_by(col(LinkRow.number))
            .having(func.count() > most)
        )  # fmt: skip
        overfull += session.exec(count)
    found = find_across(session, names[repo], repo, sorted(overfull))
    _unlink(
        session, names[repo], repo, names,
        ((number, link) for number, told in found.items() for link in told[most:]),
    )  # fmt: skip
