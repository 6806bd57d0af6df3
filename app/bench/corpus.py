"""The texts of the reader's own base, and which pinned logs they still hold.

In: an archive. Out: every issue's text, and the cases whose span is there with the pinned hash; the others
are told as missing or changed, and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.bench.cases import Case, plain_lines, sha256_of
from app.errors import InputError
from app.store.issues import find_issues, find_repository, numbers_of
from app.store.session import Store

BATCH = 500
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Document:
    """An issue as a search engine sees it."""

    number: int
    title: str
    body: str
    created_at: datetime

    @property
    def text(self) -> str:
        return f"{self.title}\n{self.body}"


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A case with its log."""

    case: Case
    log: str


@dataclass(frozen=True, slots=True)
class Found:
    """Which cases can be asked here, and the numbers of those that cannot."""

    logs: tuple[FoundLog, ...]
    missing: tuple[int, ...]
    changed: tuple[int, ...]


def read_documents(store: Store, repo: str) -> list[Document]:
    """All stored issues of a repository, by number; no pull requests.

    Raises:
        InputError: nothing of that repository is stored.
    """
    documents: list[Document] = []
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        numbers = numbers_of(session, repo_id, limit=BATCH) if repo_id is not None else []
        while repo_id is not None and numbers:
            documents += [
                Document(issue.number, issue.title, plain_lines(issue.body), issue.created_at or _LONG_AGO)
                for issue in find_issues(session, repo_id, numbers)
                if not issue.is_pull_request
            ]
            session.expunge_all()
            numbers = numbers_of(session, repo_id, after=numbers[-1], limit=BATCH)
    if not documents:
        raise InputError(f"no issue of {repo} is stored: `triage sync` or `triage import` brings them")
    return documents


def find_logs(documents: Sequence[Document], cases: Iterable[Case]) -> Found:
    """The cases whose text is stored as it was pinned."""
    bodies = {document.number: document.body for document in documents}
    logs, missing, changed = [], [], []
    for case in cases:
        body = bodies.get(case.number)
        if body is None:
            missing.append(case.number)
        elif sha256_of(log := body[case.start : case.end]) != case.sha256:
            changed.append(case.number)
        else:
            logs.append(FoundLog(case, log))
    return Found(tuple(logs), tuple(missing), tuple(changed))
