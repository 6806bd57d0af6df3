"""Files of GitHub's JSON into the store, offline; then facts.

Each row goes to the repository it names, or to the one given. Rows are stored in batches, one unit of work
each; facts are derived at the end, also when a file breaks off.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from app.errors import InputError
from app.knowledge.indexing.batches import Progress, Report, derive_stale, quiet
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.releases import save_releases
from app.store.records import CommentRecord, IssueRecord, ReleaseRecord
from app.store.session import Store
from ingest.parse.json_files import FileRow, read_rows
from ingest.parse.records import comment_record, comments_inside, issue_record, release_record, repo_named

BATCH = 200
"""Rows in one unit of work."""
MOST_FAULTS_KEPT = 10_000
"""Faults reported one by one; more are only counted."""

KINDS = ("auto", "issues", "comments", "pulls", "releases")
Record = IssueRecord | CommentRecord | ReleaseRecord


@dataclass
class ImportResult:
    """What an import did; complete when `import_paths` returns it.

    Attributes:
        stored: rows read and handed to the store, which passes by what is older than its own.
        changed: rows among them that were new or changed something.
        skipped: "file:line: what" for rows that could not be used; an exit code of 1 if there is any.
        skipped_count: how many in all; `skipped` holds the first 10,000.
        read, faults: issues whose facts were derived, and those among them where a rule threw.
    """

    stored: int = 0
    changed: int = 0
    skipped: tuple[str, ...] = ()
    skipped_count: int = 0
    read: int = 0
    faults: int = 0


def import_paths(
    store: Store,
    paths: Sequence[str | Path],
    repo: str,
    kind: str = "auto",
    *,
    stdin: IO[bytes] | None = None,
    report: Report = quiet,
) -> ImportResult:
    """Store the rows of files and derive their facts.

    A path "-" is `stdin`. `repo` takes the rows that do not name their repository. `kind` says what the
    rows are; "auto" goes by their fields.

    Raises:
        InputError: a file is missing, no JSON, a broken gzip or broken off. Whole batches before the fault
            stay, and their facts are derived.
    """
    if kind not in KINDS:
        raise InputError(f"kind {kind[:40]!r} cannot be imported: {', '.join(KINDS)} can")
    for path in paths:
        _check_path(path)
    work = _Import(store, repo, kind, report)
    broken: InputError | None = None
    try:
        for path in paths:
            work.take_file(path, stdin)
    except InputError as fault:
        broken = fault
    for name in work.repos:
        derived = derive_stale(store, name, report)
        work.result.read += derived.read
        work.result.faults += derived.faults
    if broken is not None:
        raise broken
    return work.result


def _check_path(path: str | Path) -> None:
    """Refuse what cannot be opened before anything is stored."""
    if str(path) == "-" or Path(path).is_fifo():  # a pipe may be opened but once
        return
    try:
        Path(path).open("rb").close()
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name the files in it") from None
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{path}: cannot be opened: {reason}") from None


@dataclass
class _Import:
    """One import under way; `repos` are those that rows went to."""

    store: Store
    repo: str
    kind: str
    report: Report
    result: ImportResult = field(default_factory=ImportResult)
    repos: dict[str, None] = field(default_factory=dict)

    def take_file(self, path: str | Path, stdin: IO[bytes] | None) -> None:
        """Store the rows of a file, batch by batch."""
        is_stdin = str(path) == "-"
        name = "stdin" if is_stdin else str(path)
        batch: list[tuple[str, Record]] = []
        done = 0
        with nullcontext(stdin or sys.stdin.buffer) if is_stdin else Path(path).open("rb") as source:
            for row in read_rows(source, name):
                done += 1
                try:
                    batch.extend(self._records(row))
                except InputError as fault:
                    self.result.skipped_count += 1
                    if self.result.skipped_count <= MOST_FAULTS_KEPT:
                        self.result.skipped += (f"{name}:{row.line}: {fault}",)
                if len(batch) >= BATCH:
                    self._save(batch)
                    batch = []
                    self.report(Progress("file", done, note=name))
        self._save(batch)
        self.report(Progress("file", done, note=name))

    def _records(self, row: FileRow) -> list[tuple[str, Record]]:
        """The records of one row, each with its repository."""
        if row.fault is not None:
            raise InputError(row.fault)
        if not isinstance(row.value, dict):
            raise InputError("is no JSON object")
        named = repo_named(row.value)
        repo = named if named and named.lower() != self.repo.lower() else self.repo
        kind = _kind_of(row.value) if self.kind == "auto" else self.kind
        return [(repo, record) for record in _read(row.value, kind, repo)]

    def _save(self, batch: list[tuple[str, Record]]) -> None:
        repos = dict.fromkeys(name for name, _ in batch)
        with self.store.unit_of_work() as session:
            for repo in repos:
                records = [record for name, record in batch if name == repo]
                repo_id = add_repository(session, repo)
                releases = [record for record in records if isinstance(record, ReleaseRecord)]
                issues = [record for record in records if isinstance(record, IssueRecord)]
                comments = [record for record in records if isinstance(record, CommentRecord)]
                self.result.changed += len(save_issues(session, repo_id, issues)) + len(releases)
                self.result.changed += len(save_comments(session, repo_id, comments))
                save_releases(session, repo_id, releases)
        self.repos |= repos
        self.result.stored += len(batch)


def _kind_of(row: dict[str, Any]) -> str:
    if "tag_name" in row:
        return "releases"
    if "issue_url" in row or ("issue_number" in row and "number" not in row):
        return "comments"
    if "event" in row and "title" not in row:
        raise InputError("is a timeline event, which is not kept")
    if "number" in row:
        return "issues"
    raise InputError("is no issue, comment or release: number, issue_url and tag_name are missing")


def _read(row: dict[str, Any], kind: str, repo: str) -> list[Record]:
    if kind == "comments":
        return [comment_record(row)]
    if kind == "releases":
        return [release_record(row, repo)]
    record = issue_record(row, repo)
    if kind == "pulls":  # named so, a row is a pull request even if it lacks all that only these have
        has_url = row.get("html_url") or ("createdAt" in row and row.get("url"))
        url = record.url if has_url else f"https://github.com/{repo}/pull/{record.number}"
        record = replace(record, is_pull_request=True, url=url)
    return [record, *comments_inside(row)]
