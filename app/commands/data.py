"""`triage sync`, `import`, `reextract` and `read`: store rows, and derive facts from them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.commands.database import DatabaseOption, current_settings, current_store
from app.errors import ConfigError
from app.terminal import emit, say

if TYPE_CHECKING:
    from app.config import Settings
    from app.store.session import Store

ImportKind = Literal["auto", "issues", "comments", "pulls", "releases"]
DiffFormat = Literal["text", "json"]

Repos = Annotated[
    list[str] | None, typer.Option("--repo", metavar="OWNER/NAME", help="overrides TRIAGE_REPO")
]
ApiUrl = Annotated[str | None, typer.Option("--api-url", help="overrides TRIAGE_GITHUB_API_URL")]


def sync(
    repo: Repos = None,
    api_url: ApiUrl = None,
    full: Annotated[bool, typer.Option("--full", help="fetch everything again")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="maximum number of rows per list")] = None,
    _database: DatabaseOption = None,
) -> None:
    """Fetch from GitHub once; incremental by default."""
    from app.config import REPO_NAME
    from app.server.rounds import github_client, outcome_line, turn_to_sync
    from app.terminal.progress import progress
    from ingest.sync.sync import sync as pull

    settings = current_settings()
    repos = tuple(repo) if repo else settings.repo
    if bad := [name for name in repos if not REPO_NAME.fullmatch(name)]:
        raise ConfigError(f"--repo {bad[0][:60]!r}: give owner/name")
    store = current_store(settings, create=True)
    complete = True
    with turn_to_sync(store):
        for name in repos:
            with (
                github_client(settings, url=api_url) as client,
                progress(lambda: client.limits.remaining) as report,
            ):
                result = pull(store, client, name, full=full, limit=limit, report=report)
            say(outcome_line(result, store))
            complete = complete and result.complete
    raise typer.Exit(0 if complete else 1)


def import_(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="files, .gz too, or - for stdin")],
    kind: Annotated[ImportKind, typer.Option(help="type of the rows")] = "auto",
    repo: Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="repository of the rows")] = None,
    _database: DatabaseOption = None,
) -> None:
    """Import the output of `gh api --paginate` or `gh issue list --json …`."""
    from app.terminal.progress import progress
    from ingest.importer import check_paths, import_paths

    settings = current_settings()
    check_paths(paths)
    store = current_store(settings, create=True)
    with progress() as report:
        result = import_paths(store, paths, repo or settings.default_repo, kind=kind, report=report)
    for fault in result.faults:
        say(fault)
    if result.skipped > len(result.faults):
        say(f"… and {result.skipped - len(result.faults)} more")
    say(f"{result.stored} rows stored, {result.skipped} skipped")
    raise typer.Exit(1 if result.skipped else 0)


def reextract(
    diff: Annotated[bool, typer.Option("--diff", help="only show what would change, write nothing")] = False,
    examples: Annotated[int, typer.Option(min=0, max=100, help="examples of each change, with --diff")] = 3,
    format_: Annotated[DiffFormat, typer.Option("--format", help="output format, with --diff")] = "text",
    _database: DatabaseOption = None,
) -> None:
    """Rebuild all facts, signatures and search terms from the stored raw data, offline."""
    from app.knowledge.indexing.batches import rederive_all
    from app.knowledge.indexing.diff import ReadingDiffs, diff_all, diffs_text
    from app.terminal.progress import progress

    settings = current_settings()
    store = current_store(settings)
    if diff:
        diffs = {}
        for repo in settings.repo:
            with progress() as report:
                diffs[repo] = diff_all(store, repo, report, examples=examples)
        found = ReadingDiffs(repositories=diffs)
        emit(found.model_dump_json(indent=2) if format_ == "json" else diffs_text(diffs))
        return
    for repo in settings.repo:
        with progress() as report:
            result = rederive_all(store, repo, report)
        say(f"{repo}: {result.read} read again, {result.faults} could not be read")


def read(
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]…", help="of the first repository; default: all")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="maximum number of issues to read")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count what would be read")] = False,
    _database: DatabaseOption = None,
) -> None:
    """Have issues read by your own models (TRIAGE_READER_URL, TRIAGE_EMBEDDINGS_URL). Exit 1: not all are."""
    from app.errors import ReaderError
    from app.store.engine.sync_lock import READING, sync_lock

    settings = current_settings()
    if settings.reader_url is None and (settings.embeddings_url is None or numbers or dry_run):
        raise ConfigError("TRIAGE_READER_URL is not set: it names your vLLM, such as http://gpu-1:8000")
    complete = True
    with closing(current_store(settings)) as store, sync_lock(store.engine, READING) as held:
        if not (held or numbers or dry_run):
            raise ReaderError("another process reads just now, and nothing is asked twice: `triage status`")
        for repo in settings.repo[:1] if numbers else settings.repo:
            try:
                work = _plan if dry_run else _read
                complete = work(settings, store, repo, numbers or [], limit) and complete
            except ReaderError as error:
                say(f"{repo}: {error.message}")
                complete = False
    raise typer.Exit(0 if complete else 1)


def _plan(settings: Settings, store: Store, repo: str, numbers: list[int], limit: int | None) -> bool:
    from app.knowledge.operations.model_reading import plan_reading
    from app.model_reader.client import reader_client

    with reader_client(settings) as client:
        plan = plan_reading(store, repo, client, numbers=numbers, limit=limit)
    emit(f"{repo}: {plan.issues:,} issues, about {plan.tokens:,} tokens to {plan.model}")
    return True


def _read(settings: Settings, store: Store, repo: str, numbers: list[int], limit: int | None) -> bool:
    """Have issues embedded and read, and print the results; True if none is left to read."""
    from app.server.rounds import embed_repository, read_repository
    from app.terminal.progress import progress

    with progress() as report:
        embedded = None if numbers else embed_repository(settings, store, repo, report, limit=limit)
    if embedded is not None:
        say(f"{repo}: {embedded.words}")
    with progress() as report:
        result = read_repository(settings, store, repo, report, numbers=numbers, limit=limit)
    if result is not None:
        say(f"{repo}: {result.words}")
    return result is None or not result.stopped
