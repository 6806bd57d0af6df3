"""`triage …`: parse, call one function, print. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TextIO

import typer

from app import __version__
from app.config import LOG_LIMIT_BYTES, REPO_NAME, Settings, load_settings
from app.console import emit, say, set_up_logging
from app.errors import (
    ConfigError,
    GitHubError,
    GoneError,
    InputError,
    NotFoundError,
    TooLargeError,
    TriageError,
)
from app.store.session import Store

if TYPE_CHECKING:
    from app.knowledge.report_shapes import Report

app = typer.Typer(
    name="triage", no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False,
    help="Paste a vLLM crash log; see the known issue, what helps now, and whether a release fixes it.",
)  # fmt: skip

bench_app = typer.Typer(no_args_is_help=True, help="Measure this installation over its own data.")
app.add_typer(bench_app, name="bench")

ImportKind = Literal["auto", "issues", "comments", "pulls", "releases"]
DiagnosisFormat = Literal["text", "json", "markdown"]
ReportFormat = Literal["markdown", "json"]
DiffFormat = Literal["text", "json"]

Host = Annotated[str, typer.Option(help="address to listen on")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="port to listen on")]
Repos = Annotated[
    list[str] | None, typer.Option("--repo", metavar="OWNER/NAME", help="in place of TRIAGE_REPO")
]
ApiUrl = Annotated[str | None, typer.Option("--api-url", help="in place of TRIAGE_GITHUB_API_URL")]


def _version(asked: bool) -> None:
    if asked:
        emit(f"triage {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    del version


@app.command()
def up(host: Host = "127.0.0.1", port: Port = 8000) -> None:
    """Set up, load the starter cards, sync in the background, serve: the whole thing in one word."""
    from app.serving import check_port, serve

    settings = load_settings()
    check_port(host, port)
    _prepare(settings)
    if settings.github_token is None:
        say("no TRIAGE_GITHUB_TOKEN: GitHub allows 60 requests an hour; with a token it is 5,000")
    serve(settings, host=host, port=port, workers=1, sync_every_s=900.0, sync_now=True)


def _prepare(settings: Settings) -> None:
    from app.knowledge.overview import overview
    from app.knowledge.starter_set import load_starter_set
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    store = open_store(settings.database_url)
    migrate_store(store)
    load_starter_set(store)
    view = overview(store, settings.default_repo)
    if view.is_starter_only:
        say(f"the data is the starter set: {view.issues} known failures; a sync brings the rest")
    else:
        say(f"{view.issues} issues and {view.pulls} pull requests of {settings.default_repo} are stored")
    store.close()


@app.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="processes that answer")] = 1,
    sync_every: Annotated[str | None, typer.Option(metavar="15m", help="sync beside serving")] = None,
) -> None:
    """Serve only, or with the background sync."""
    from app.serving import serve as run

    every_s = _duration_s(sync_every) if sync_every else None
    run(load_settings(), host=host, port=port, workers=workers, sync_every_s=every_s, sync_now=False)


def _duration_s(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})(s|m|h)", text)
    if not found or int(found.group(1)) == 0:
        raise ConfigError(f"--sync-every {text[:20]!r}: give a number and s, m or h, such as 15m")
    return float(found.group(1)) * {"s": 1, "m": 60, "h": 3600}[found.group(2)]


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema; safe to repeat."""
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    store = open_store(load_settings().database_url)
    say(f"the schema is {migrate_store(store)}")


@app.command()
def sync(
    repo: Repos = None,
    api_url: ApiUrl = None,
    full: Annotated[bool, typer.Option("--full", help="walk everything again")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="stop each list after so many rows")] = None,
) -> None:
    """Pull from GitHub once and leave; incremental by default."""
    from app.progress import Meter, progress
    from app.syncing import github_client, outcome_line, turn_to_sync
    from ingest.expected import Expected
    from ingest.sync import sync as pull

    settings = load_settings()
    repos = tuple(repo) if repo else settings.repo
    if bad := [name for name in repos if not REPO_NAME.fullmatch(name)]:
        raise ConfigError(f"--repo {bad[0][:60]!r}: give owner/name")
    store = _current_store(settings)
    complete = True
    with turn_to_sync(store):
        for name in repos:
            with github_client(settings, url=api_url) as client:
                meter = Meter(lambda: client.remaining, Expected(store, client, name, full=full))
                with progress(meter) as report:
                    result = pull(store, client, name, full=full, limit=limit, report=report)
            say(outcome_line(result, store))
            complete = complete and result.complete
    raise typer.Exit(0 if complete else 1)


def _current_store(settings: Settings) -> Store:
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    store = open_store(settings.database_url)
    migrate_store(store)
    return store


@app.command("import")
def import_files(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="files, .gz too, or - for stdin")],
    kind: Annotated[ImportKind, typer.Option(help="what the rows are")] = "auto",
    repo: Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="whose rows they are")] = None,
) -> None:
    """Load what `gh api --paginate` or `gh issue list --json …` prints."""
    from app.progress import progress
    from ingest.importer import import_paths

    settings = load_settings()
    store = _current_store(settings)
    with progress() as report:
        result = import_paths(store, paths, repo or settings.default_repo, kind=kind, report=report)
    for fault in result.skipped[:50]:
        say(fault)
    if len(result.skipped) > 50:
        say(f"… and {len(result.skipped) - 50} more")
    say(f"{result.stored} rows stored, {len(result.skipped)} skipped")
    raise typer.Exit(1 if result.skipped else 0)


@app.command()
def extract(file: Annotated[str, typer.Argument(metavar="FILE|-")] = "-") -> None:
    """JSON lines of issues in, JSON lines of facts out; touches no database."""
    from app.extract.jsonl import facts_lines

    failed = False
    with _open_text(file) as lines:
        for answer in facts_lines(lines, "stdin" if file == "-" else file):
            if answer.fault:
                say(answer.fault)
                failed = True
            else:
                emit(answer.line)
    raise typer.Exit(1 if failed else 0)


@app.command()
def diagnose(
    file: Annotated[str, typer.Argument(metavar="FILE|-")] = "-",
    format_: Annotated[DiagnosisFormat | None, typer.Option("--format", help="how to answer")] = None,
    vllm_version: Annotated[str | None, typer.Option(help="what you run")] = None,
    url: Annotated[str | None, typer.Option(help="ask this server in place of the own database")] = None,
) -> None:
    """A crash log in, the known issue out. Exit 0: same or likely; 3: related or unknown; 1: error."""
    from app.knowledge.answers import Diagnosis
    from app.knowledge.diagnosis import diagnose as ask
    from app.knowledge.logtext import decode_log
    from app.knowledge.markdown import diagnosis_markdown
    from app.remote import diagnose_remotely

    log = decode_log(_read_bytes(file))
    settings = load_settings()
    answer: Diagnosis
    if url:
        answer = diagnose_remotely(url, log, vllm_version=vllm_version)
    else:
        answer = ask(_current_store(settings), log, repos=settings.repo, vllm_version=vllm_version)
    shape = format_ or ("text" if sys.stdout.isatty() else "json")
    if shape == "json":
        emit(answer.model_dump_json(indent=2))
    elif shape == "markdown":
        emit(diagnosis_markdown(answer))
    else:
        from app.plain import diagnosis_text

        emit(diagnosis_text(answer))
    raise typer.Exit(0 if answer.verdict in {"same", "likely"} else 3)


def _read_bytes(file: str) -> bytes:
    """The input, read no further than just past the limit."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(LOG_LIMIT_BYTES + 1)
        else:
            with Path(file).open("rb") as handle:
                data = handle.read(LOG_LIMIT_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    if len(data) > LOG_LIMIT_BYTES:
        limit = LOG_LIMIT_BYTES // 1048576
        raise TooLargeError(f"{file} is over the limit of {limit} MiB: cut the start-up lines, keep the end")
    return data


def _open_text(file: str) -> TextIO:
    try:
        if file == "-":
            return sys.stdin
        return Path(file).open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None


@app.command()
def report(
    issue: Annotated[str, typer.Argument(metavar="NUMBER|ISSUE-URL", help="which issue")],
    format_: Annotated[ReportFormat, typer.Option("--format", help="how to answer")] = "markdown",
) -> None:
    """All that is known of one issue, fetched if not stored. Exit 1: not to be had; 2: not an issue."""
    from app.knowledge.report_address import parse_issue_address
    from app.knowledge.report_markdown import report_markdown

    settings = load_settings()
    asked = parse_issue_address(issue, settings.repo)
    told = _stored_report(settings, asked.repo, asked.number)
    emit(told.model_dump_json(indent=2) if format_ == "json" else report_markdown(told))


def _stored_report(settings: Settings, repo: str, number: int) -> Report:
    """The report on an issue, which is fetched first where it is not stored."""
    from app.knowledge.report import make_report
    from app.syncing import github_client
    from ingest.on_demand import fetch_with_links

    store = _current_store(settings)
    with suppress(NotFoundError):
        return make_report(store, repo, number)
    say(f"#{number} of {repo} is not stored: asking GitHub")
    try:
        with github_client(settings, patient=False) as client:
            found = fetch_with_links(store, client, repo, number)
    except GitHubError as error:
        raise GitHubError(f"#{number} is not stored and could not be fetched: {error.message}") from None
    if not found:
        raise GoneError(f"GitHub has no #{number} in {repo}: deleted, transferred or never was")
    return make_report(store, repo, number)


@app.command()
def reextract(
    diff: Annotated[bool, typer.Option("--diff", help="only tell what would change, write nothing")] = False,
    examples: Annotated[int, typer.Option(min=0, max=100, help="of each change, with --diff")] = 3,
    format_: Annotated[DiffFormat, typer.Option("--format", help="how to tell, with --diff")] = "text",
) -> None:
    """Derive all facts, signatures and search terms again from the stored raw data, offline."""
    from app.knowledge.rederive import rederive_all
    from app.progress import progress

    settings = load_settings()
    if diff:
        _tell_diff(settings, examples=examples, format_=format_)
        return
    store = _current_store(settings)
    for repo in settings.repo:
        with progress() as report:
            result = rederive_all(store, repo, report)
        say(f"{repo}: {result.read} read again, {result.faults} could not be read")


def _tell_diff(settings: Settings, *, examples: int, format_: DiffFormat) -> None:
    from app.knowledge.diff_text import ReadingDiffs, diffs_text
    from app.knowledge.rederive import diff_all
    from app.progress import progress
    from app.store.schema import check_current
    from app.store.session import open_store

    store = open_store(settings.database_url)
    check_current(store)  # not migrated: nothing is to be written
    diffs = {}
    for repo in settings.repo:
        with progress() as report:
            diffs[repo] = diff_all(store, repo, report, examples=examples)
    if format_ == "json":
        emit(ReadingDiffs(repositories=diffs).model_dump_json(indent=2))
    else:
        emit(diffs_text(diffs))


@bench_app.command("diagnose")
def bench_diagnose(
    as_json: Annotated[bool, typer.Option("--json", help="all figures as JSON")] = False,
    write: Annotated[Path | None, typer.Option(help="put the table between the marks of this file")] = None,
) -> None:
    """How well logs find their issue, beside what search libraries reach; takes some minutes."""
    from app.bench.diagnose import bench_diagnose as measure

    settings = load_settings()
    store = _current_store(settings)
    emit(measure(store, settings.default_repo, tell=say, as_json=as_json, write=write))


@app.command()
def status() -> None:
    """Whether a sync runs, the last ones, freshness, cursors and what is stored, as JSON."""
    from app.knowledge.status import status as ask

    settings = load_settings()
    found = ask(_current_store(settings), settings.repo)
    emit(found.model_dump_json(indent=2))


def main() -> NoReturn:
    """Entry point: every refusal is one line on stderr and a fitting exit code."""
    set_up_logging()
    try:
        app()
    except TriageError as error:
        say(f"triage: {error.message}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say("stopped; what was stored stays")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(0)


if __name__ == "__main__":
    main()
