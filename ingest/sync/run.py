"""One run of the sync, as its parts share it: where it reads and writes, and what came of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlmodel import Session

from app.errors import GitHubError, InputError
from app.store.github.comments import save_comments
from app.store.github.issues import save_issues
from app.store.github.sync_state import find_cursor, note_run
from app.store.records import CommentRecord, IssueRecord
from app.store.session import Store
from ingest.derive import Derive, Derived, Report, derive_stale
from ingest.github.client import GitHubClient
from ingest.parse.records import comment_record, issue_record


@dataclass
class Run:
    """One run.

    Attributes:
        full: everything is walked again, and what GitHub lost is marked.
        limit: rows after which each list is left; `limited` says that one was.
        stored: rows that were new or changed, by kind.
        gone: issues and comments that GitHub was found not to have any more.
        error: why it stopped early.
        ended: whether it came to its end, well or ill.
        requests_before, not_modified_before: what the client had asked for others.
    """

    store: Store
    client: GitHubClient
    repo: str
    repo_id: int
    run_id: int
    full: bool
    limit: int | None
    report: Report
    derive: Derive
    stored: dict[str, int] = field(default_factory=lambda: {"issues": 0, "comments": 0, "releases": 0})
    gone: int = 0
    derived: Derived = field(default_factory=Derived)
    skipped: list[str] = field(default_factory=list)
    limited: bool = False
    error: GitHubError | None = None
    ended: bool = False
    requests_before: int = 0
    not_modified_before: int = 0

    def __post_init__(self) -> None:
        self.requests_before = self.client.requests
        self.not_modified_before = self.client.not_modified

    @property
    def figures(self) -> dict[str, Any]:
        """What the run cost and brought, as the archive notes it."""
        return {
            "requests": self.client.requests - self.requests_before,
            "not_modified": self.client.not_modified - self.not_modified_before,
            "remaining": self.client.remaining,
            "stored": sum(self.stored.values()),
        }

    def cursor(self, stream: str) -> dict[str, Any]:
        """Where a stream stands."""
        with self.store.reading() as session:
            return find_cursor(session, self.repo_id, stream)

    def save_rows(self, session: Session, kind: str, rows: tuple[Any, ...], asked_at: datetime) -> int:
        """Store a page's rows in the caller's unit of work; how many were new or changed.

        A row that cannot be used is noted in `skipped`.
        """
        if kind == "issues":
            records, faults = self.issue_records(rows)
            changed = len(save_issues(session, self.repo_id, records, seen_at=asked_at))
        else:
            remarks, faults = self.comment_records(rows)
            changed = len(save_comments(session, self.repo_id, remarks, seen_at=asked_at))
        self.skipped.extend(faults)
        note_run(session, self.run_id, **self.figures)
        return changed

    def issue_records(self, rows: tuple[Any, ...]) -> tuple[list[IssueRecord], list[str]]:
        """The rows that can be used as issues, and the faults of the others."""
        records, faults = [], []
        for row in rows:
            try:
                records.append(issue_record(row, self.repo))
            except InputError as fault:
                faults.append(f"issue {_name_of(row)}: {fault}")
        return records, faults

    def comment_records(self, rows: tuple[Any, ...]) -> tuple[list[CommentRecord], list[str]]:
        """The rows that can be used as comments, and the faults of the others."""
        records, faults = [], []
        for row in rows:
            try:
                records.append(comment_record(row))
            except InputError as fault:
                faults.append(f"comment {_name_of(row)}: {fault}")
        return records, faults

    def derive_facts(self) -> None:
        """Read all that is stored and not read yet."""
        more = derive_stale(self.store, self.repo, self.report, derive=self.derive)
        self.derived = Derived(self.derived.read + more.read, self.derived.faults + more.faults)


def _name_of(row: Any) -> str:
    known = row.get("number") or row.get("id") if isinstance(row, Mapping) else None
    return str(known)[:40] if known is not None else "without a key"


def now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)
