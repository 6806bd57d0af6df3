"""Import files of GitHub's JSON offline, then derive facts.

Supported formats: JSON lines, a JSON array, concatenated arrays (output of `gh api --paginate`) and arrays of
arrays (`--slurp`), plain or gzipped; files are streamed. An invalid JSON line is reported and skipped, but a
file that begins with many of them is refused; an array with invalid JSON ends there, as the start of its next
row is unknown. Each row goes to the repository it names, or to the given one. Rows are stored in batches, one
unit of work each; facts are derived at the end, even if a file is truncated.
"""

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, TextIO

from app.errors import InputError
from app.knowledge.indexing.batches import derive_stale
from app.store.github.issues import add_repository, save_comments, save_issues
from app.store.github.releases import save_releases
from app.store.records import CommentRecord, IssueRecord, Progress, ReleaseRecord, Report, quiet
from app.store.session import Store
from ingest.parse import comment_record, comments_inside, issue_record, release_record, repo_named

LONGEST_ROW = 64 * 1024 * 1024
HOPELESS_LINES = 1000
"""Number of invalid lines at a file's start after which the rest is not read."""
FAULTS_KEPT = 50
CHUNK_BYTES = 256 * 1024

_GZIP = b"\x1f\x8b"
_GAP = re.compile(r"[ \t\r\n,]*")
"""Separators between the values of an array."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(frozen=True, slots=True)
class FileRow:
    """A JSON value with its line number, or the error of an invalid line."""

    line: int
    value: Any = None
    fault: str | None = None


def read_rows(source: IO[bytes], name: str) -> Iterator[FileRow]:
    """Yield the rows of an open file.

    Raises:
        InputError: the file is not JSON, not text, a damaged gzip, or a truncated array.
    """
    try:
        buffered: Any = source if isinstance(source, io.BufferedReader) else io.BufferedReader(source)
        plain: Any = gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == _GZIP else buffered
        # Invalid UTF-8 becomes lone surrogates, so that only the line with it fails.
        text = io.TextIOWrapper(plain, encoding="utf-8-sig", errors="surrogateescape", newline="\n")
        try:
            yield from _rows(text, name)
        finally:
            text.detach()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{name}: is a broken gzip file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from None


def _rows(text: TextIO, name: str) -> Iterator[FileRow]:
    lines = enumerate(_lines(text, name), 1)
    number, line = next((pair for pair in lines if pair[1].strip()), (0, ""))
    if line.lstrip().startswith("[") or line.strip() == "{":
        yield from _array_rows(text, line, number, name)
    else:
        yield from _line_rows(chain([(number, line)], lines), name)


def _lines(text: TextIO, name: str) -> Iterator[str]:
    while line := text.readline(LONGEST_ROW):
        if len(line) == LONGEST_ROW:
            raise InputError(f"{name}: holds a line of more than {LONGEST_ROW >> 20} MiB")
        yield line


def _is_text(chunk: str) -> bool:
    try:
        chunk.encode()
    except UnicodeEncodeError:
        return False
    return True


def _line_rows(lines: Iterator[tuple[int, str]], name: str) -> Iterator[FileRow]:
    valid = invalid = 0
    for number, line in lines:
        if line.strip():
            row = _line_row(line, number)
            valid, invalid = valid + (row.fault is None), invalid + (row.fault is not None)
            yield from _flat(row)
        if invalid == HOPELESS_LINES and not valid:
            break
    if invalid and not valid:
        lines_read = f" in its first {invalid:,} lines" if invalid == HOPELESS_LINES else ""
        raise InputError(f"{name}: is not JSON{lines_read}; wanted are JSON lines or a JSON array")


def _line_row(line: str, number: int) -> FileRow:
    if not _is_text(line):
        return FileRow(number, fault="is no UTF-8 text")
    try:
        return FileRow(number, json.loads(line, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return FileRow(number, fault="is no JSON")


def _flat(row: FileRow) -> Iterator[FileRow]:
    if isinstance(row.value, list):
        for item in row.value:
            yield from _flat(FileRow(row.line, item))
    else:
        yield row


def _checked(chunk: str, name: str) -> str:
    if not _is_text(chunk):
        raise InputError(f"{name}: is no UTF-8 text")
    return chunk


def _array_rows(text: TextIO, window: str, line: int, name: str) -> Iterator[FileRow]:
    """Yield rows of concatenated arrays and objects; `window` is the text read but not yet parsed."""
    at = depth = 0
    size, window = CHUNK_BYTES, _checked(window, name)
    while True:
        gap = _GAP.match(window, at)
        end = gap.end() if gap else at
        line += window.count("\n", at, end)
        at, value, is_whole = end, None, False
        if at < len(window) and window[at] in "[]":
            depth += 1 if window[at] == "[" else -1
            if not 0 <= depth <= 2:
                raise InputError(f"{name}:{line}: is no JSON array")
            at += 1
            continue
        if at < len(window):
            try:
                value, end = _DECODER.raw_decode(window, at)
                is_whole = True
            except (ValueError, RecursionError):
                pass
        if not is_whole or (end == len(window) and window[-1] not in '"}'):  # a number may go on
            chunk = _checked(text.read(size), name) if len(window) - at <= LONGEST_ROW else ""
            if chunk:
                window, at, size = window[at:] + chunk, 0, size * 2
                continue
            if at == len(window):
                break
            if not is_whole:
                raise InputError(f"{name}:{line}: the JSON is broken here")
        yield FileRow(line, value)
        line += window.count("\n", at, end)
        at, size = end, CHUNK_BYTES
    if depth:
        raise InputError(f"{name}:{line}: the JSON array breaks off")


BATCH = 200
"""Rows per unit of work."""

KINDS = ("auto", "issues", "comments", "pulls", "releases")
Record = IssueRecord | CommentRecord | ReleaseRecord


@dataclass
class ImportResult:
    """The result of an import; complete when `import_paths` returns it.

    Attributes:
        stored: rows passed to the store, which ignores those older than its own.
        skipped: number of unusable rows; if there is any, the exit code is 1.
        faults: "file:line: error" of the first `FAULTS_KEPT` of them.
    """

    stored: int = 0
    skipped: int = 0
    faults: list[str] = field(default_factory=list)


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

    A path "-" means `stdin`. `repo` is for rows that do not name their repository. `kind` is the kind of the
    rows; "auto" detects it by their fields.

    Raises:
        InputError: a file is missing, not JSON, damaged or truncated. Complete batches before the error
            stay, and their facts are derived.
    """
    if kind not in KINDS:
        raise InputError(f"kind {kind[:40]!r} cannot be imported: {', '.join(KINDS)} can")
    check_paths(paths)
    work = _Import(store, repo, kind, report)
    broken: InputError | None = None
    try:
        for path in paths:
            work.take_file(path, stdin)
    except InputError as fault:
        broken = fault
    for name in work.repos:
        derive_stale(store, name, report)
    if broken is not None:
        raise broken
    return work.result


def check_paths(paths: Sequence[str | Path]) -> None:
    """Raise InputError for files that cannot be opened, before anything is stored."""
    for path in paths:
        _check_path(path)


def _check_path(path: str | Path) -> None:
    if str(path) == "-" or Path(path).is_fifo():  # a pipe can be opened only once
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
    """An import in progress; `repos` are the repositories of the rows stored so far."""

    store: Store
    repo: str
    kind: str
    report: Report
    result: ImportResult = field(default_factory=ImportResult)
    repos: dict[str, None] = field(default_factory=dict)

    def take_file(self, path: str | Path, stdin: IO[bytes] | None) -> None:
        """Store the rows of a file in batches."""
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
                    self.result.skipped += 1
                    if len(self.result.faults) < FAULTS_KEPT:
                        self.result.faults.append(f"{name}:{row.line}: {fault}")
                if len(batch) >= BATCH:
                    self._save(batch)
                    batch = []
                    self.report(Progress("file", done, note=name))
        self._save(batch)
        self.report(Progress("file", done, note=name))

    def _records(self, row: FileRow) -> list[tuple[str, Record]]:
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
                save_issues(session, repo_id, issues)
                save_comments(session, repo_id, comments)
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
    if kind == "pulls":  # stated kind: a pull request even without any of the fields specific to them
        has_url = row.get("html_url") or ("createdAt" in row and row.get("url"))
        url = record.url if has_url else f"https://github.com/{repo}/pull/{record.number}"
        record = replace(record, is_pull_request=True, url=url)
    return [record, *comments_inside(row)]
