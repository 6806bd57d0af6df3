"""The queries of the benchmark and the texts that are searched.

Logs of servers that were made to fail are stored completely. For a log in an issue only number, offsets and
hash are stored; its text comes from the local database. Cases with missing or changed texts are only listed.
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
    """The complete output of a server that was made to fail, with labels."""

    id: str
    vllm_version: str
    error: str
    also_ok: tuple[str, ...] = ()
    """Other messages that are as correct as `error`."""
    expected: tuple[int, ...] = ()
    """Issues known to report this failure, if any."""
    unseen: bool = False
    """Not used for tuning any rule or weight."""
    note: str = ""
    """Why a label differs from the first annotator's."""
    log: str


class Case(Frozen):
    """A log in an issue's text: its offsets (code points of `plain_lines`), hash and correct answers."""

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
    """A text of our own that no issue explains; `why` describes it."""

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
    """An issue as input of a search engine; `text` is title and body."""

    number: int
    body: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredCases:
    """The cases available in this database, with their logs, and the issue numbers of the others."""

    logs: tuple[tuple[Case, str], ...]
    missing: tuple[int, ...]
    changed: tuple[int, ...]


def sha256_of(text: str) -> str:
    """Return the hash that identifies a span's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain_lines(text: str) -> str:
    """Normalize line ends to LF; GitHub stores what the browser sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load_pinned() -> Pinned:
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
    """Return all stored issues of a repository by number, without pull requests.

    Raises:
        InputError: no issue of the repository is stored.
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
