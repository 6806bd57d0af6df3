"""The state shared by the parts of a sync run: store, client, options, and the result so far."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from app.errors import GitHubError, InputError
from app.knowledge.indexing.batches import derive_stale
from app.store.github.issues import save_comments, save_issues
from app.store.github.sync_state import note_run
from app.store.records import Report
from app.store.session import Store
from ingest.github.client import GitHubClient
from ingest.parse import comment_record, issue_record

T = TypeVar("T")


@dataclass
class SyncResult:
    """The result of a run; complete when `sync` returns it.

    Attributes:
        issues, comments, releases: rows that were new or changed.
        read, faults: issues whose facts were derived, and those among them where a rule raised.
        gone: issues and comments that a full run found deleted or transferred.
        requests, not_modified, remaining: requests made, 304 responses, and requests left, if known.
        skipped: unusable rows, each with its number or id and the error.
        limited: stopped because `limit` rows were reached.
        ended: the run was not interrupted; it may have failed with `error`.
        error: why it stopped early; everything before it is stored.
    """

    repo: str
    issues: int = 0
    comments: int = 0
    releases: int = 0
    read: int = 0
    faults: int = 0
    gone: int = 0
    requests: int = 0
    not_modified: int = 0
    remaining: int | None = None
    skipped: tuple[str, ...] = ()
    limited: bool = False
    ended: bool = False
    error: GitHubError | None = None

    @property
    def complete(self) -> bool:
        """True if everything requested is stored (exit code 0)."""
        return self.ended and self.error is None and not self.skipped

    @property
    def stored(self) -> int:
        return self.issues + self.comments + self.releases


@dataclass
class SyncRun:
    """One sync run, with a client of its own, as the client's requests are the run's.

    Attributes:
        full: list everything again, and mark what is gone from GitHub.
        limit: maximum number of rows per list; `result.limited` is set if one reached it.
    """

    store: Store
    client: GitHubClient
    repo: str
    repo_id: int
    run_id: int
    full: bool
    limit: int | None
    report: Report
    result: SyncResult

    @property
    def figures(self) -> dict[str, Any]:
        """The run's counts for `note_run` and `end_run`."""
        result, client = self.result, self.client
        result.requests, result.not_modified = client.requests, client.not_modified
        result.remaining = client.limits.remaining
        names = ("requests", "not_modified", "remaining", "stored")
        return {name: getattr(result, name) for name in names}

    def store_rows(
        self, kind: str, rows: tuple[Any, ...], asked_at: datetime, also: Callable[[Session], None]
    ) -> None:
        """Store rows ("issues" or "comments") and call `also` in one unit of work, and count the rows.

        Unusable rows are added to `result.skipped`.
        """
        with self.store.unit_of_work() as session:
            if kind == "issues":
                issues = self._records(rows, "issue", lambda row: issue_record(row, self.repo))
                changed = len(save_issues(session, self.repo_id, issues, seen_at=asked_at))
            else:
                comments = self._records(rows, "comment", comment_record)
                changed = len(save_comments(session, self.repo_id, comments, seen_at=asked_at))
            note_run(session, self.run_id, **self.figures)
            also(session)
        self.result.issues += changed if kind == "issues" else 0
        self.result.comments += changed if kind == "comments" else 0

    def _records(self, rows: tuple[Any, ...], noun: str, read: Callable[[Any], T]) -> list[T]:
        records = []
        for row in rows:
            try:
                records.append(read(row))
            except InputError as fault:
                self.result.skipped += (f"{noun} {_key_of(row)}: {fault}",)
        return records

    def derive_facts(self) -> None:
        found = derive_stale(self.store, self.repo, self.report)
        self.result.read += found.read
        self.result.faults += found.faults


def _key_of(row: Any) -> str:
    known = row.get("number") or row.get("id") if isinstance(row, Mapping) else None
    return str(known)[:40] if known is not None else "without a key"


def now() -> datetime:
    """Return the local time, in UTC."""
    return datetime.now(UTC)
