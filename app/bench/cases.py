"""What the repository pins of the benchmark: facts, one JSON object a line.

The texts of the reader's own base, and which pinned logs they still hold.

In: an archive. Out: every issue's text, and the cases whose span is there with the pinned hash; the others
are told as missing or changed, and left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.bench.rewrite import Form
from app.errors import InputError
from app.store.github.issues import find_issues, find_repository, numbers_of
from app.store.session import Store


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way to ask a case's log."""

    form: Form
    seed: int


@dataclass(frozen=True, slots=True)
class Case:
    """A log in an issue's text: where it stands (code points of `plain_lines`), its hash, what is right."""

    number: int
    start: int
    end: int
    sha256: str
    right: tuple[int, ...]
    rewrites: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question without a log and the issues that answer it."""

    id: str
    text: str
    right: tuple[int, ...]
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """A text of our own behind which no issue stands; `why` says what it is."""

    id: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """All that is asked."""

    cases: Sequence[Case]
    questions: Sequence[Question]
    foreign: Sequence[Foreign]


def sha256_of(text: str) -> str:
    """The hash by which a pinned span is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain_lines(text: str) -> str:
    """A text with one kind of line end: GitHub keeps what the browser sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load_pinned() -> Pinned:
    """All that this repository pins."""
    return Pinned(load_cases(), load_questions(), load_foreign())


def load_cases() -> list[Case]:
    """The pinned logs."""
    return [
        Case(
            row["number"],
            row["start"],
            row["end"],
            row["sha256"],
            tuple(row["right"]),
            tuple(Rewrite(way["form"], way["seed"]) for way in row["rewrites"]),
        )
        for row in _rows("cases.jsonl")
    ]


def load_questions() -> list[Question]:
    """The questions without a log."""
    return [
        Question(row["id"], row["text"], tuple(row["right"]), row["held_out"])
        for row in _rows("questions.jsonl")
    ]


def load_foreign() -> list[Foreign]:
    """The texts with no issue behind them."""
    return [Foreign(row["id"], row["text"], row["why"]) for row in _rows("foreign.jsonl")]


def load_twins() -> list[frozenset[int]]:
    """Groups of issues that report the same failure."""
    return [frozenset(row["numbers"]) for row in _rows("twins.jsonl")]


def save_cases(cases: Iterable[Case], path: Path) -> None:
    """Write cases, one a line."""
    path.write_text("".join(json.dumps(asdict(case)) + "\n" for case in cases), encoding="utf-8")


def _rows(name: str) -> Iterator[dict[str, Any]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return (json.loads(line) for line in text.split("\n") if line.strip())


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
