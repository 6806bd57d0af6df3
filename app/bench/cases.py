"""What is asked in the benchmark, and over which texts.

Logs of servers that were made to fail are kept whole. Of an issue's log only facts are pinned (number, place,
hash): the text comes from the reader's own base. A case whose text is not stored, or changed, is listed only.
"""

import gzip
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import TypeVar

from app.errors import InputError
from app.extract.facts import Frozen
from app.store.github.issues import each_issue, find_repository
from app.store.session import Store

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class RealLog(Frozen):
    """All that a server printed that was made to fail, and what is right for it."""

    id: str
    vllm_version: str
    error: str
    also_ok: tuple[str, ...] = ()
    """Other messages that name the cause as well as `error` does."""
    expected: tuple[int, ...] = ()
    """Issues that report this failure, as far as is known; empty where nobody did."""
    unseen: bool = False
    """No rule and no weight was chosen by it."""
    note: str = ""
    """Why a label differs from the first reader's."""
    log: str


class Case(Frozen):
    """A log in an issue's text: where it stands (code points of `plain_lines`), its hash, what is right."""

    number: int
    start: int
    end: int
    sha256: str
    right: tuple[int, ...]


class Question(Frozen):
    """A question without a log and the issues that answer it."""

    id: str
    text: str
    right: tuple[int, ...]
    held_out: bool = False


class Foreign(Frozen):
    """A text of our own behind which no issue stands; `why` says what it is."""

    id: str
    text: str
    why: str


Row = TypeVar("Row", bound=Frozen)


@dataclass(frozen=True, slots=True)
class Pinned:
    cases: Sequence[Case]
    questions: Sequence[Question]
    foreign: Sequence[Foreign]
    real_logs: Sequence[RealLog] = ()


@dataclass(frozen=True, slots=True)
class SearchText:
    """An issue as a search engine sees it: `text` is its title and body."""

    number: int
    body: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredCases:
    """The cases that can be asked here, each with its log, and the numbers of those that cannot."""

    logs: tuple[tuple[Case, str], ...]
    missing: tuple[int, ...]
    changed: tuple[int, ...]


def sha256_of(text: str) -> str:
    """The hash by which a pinned span is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain_lines(text: str) -> str:
    """A text with one kind of line end: GitHub keeps what the browser sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load_pinned() -> Pinned:
    """All that this repository pins."""
    return Pinned(
        _rows("cases.jsonl", Case),
        _rows("questions.jsonl", Question),
        _rows("foreign.jsonl", Foreign),
        [*_rows("real_logs.jsonl.gz", RealLog), *_rows("unseen_logs.jsonl.gz", RealLog)],
    )


def _rows(name: str, shape: type[Row]) -> list[Row]:
    packed = (files(__package__) / name).read_bytes()
    lines = (gzip.decompress(packed) if name.endswith(".gz") else packed).decode().split("\n")
    return [shape.model_validate_json(line) for line in lines if line.strip()]


def read_texts(store: Store, repo: str) -> list[SearchText]:
    """All stored issues of a repository, by number; no pull requests.

    Raises:
        InputError: nothing of that repository is stored.
    """
    texts: list[SearchText] = []
    with store.reading() as session:
        for issue in each_issue(session, find_repository(session, repo)):
            if not issue.is_pull_request:
                body = plain_lines(issue.body)
                text = f"{issue.title}\n{body}"
                texts.append(SearchText(issue.number, body, text, issue.created_at or _LONG_AGO))
    if not texts:
        raise InputError(f"no issue of {repo} is stored: `triage sync` or `triage import` brings them")
    return texts


def find_logs(issues: Sequence[SearchText], cases: Iterable[Case]) -> StoredCases:
    """The cases whose text is stored as it was pinned."""
    bodies = {issue.number: issue.body for issue in issues}
    logs, missing, changed = [], [], []
    for case in cases:
        body = bodies.get(case.number)
        if body is None:
            missing.append(case.number)
        elif sha256_of(log := body[case.start : case.end]) != case.sha256:
            changed.append(case.number)
        else:
            logs.append((case, log))
    return StoredCases(tuple(logs), tuple(missing), tuple(changed))
