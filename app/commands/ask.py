"""`triage diagnose`, `extract` and `report`: a text or a number in, an answer out."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from app.commands.opened import current_store
from app.config import LOG_LIMIT_BYTES, Settings, load_settings
from app.console import emit, say
from app.errors import GitHubError, GoneError, InputError, NotFoundError, TooLargeError

if TYPE_CHECKING:
    from app.knowledge.report_shapes import Report

DiagnosisFormat = Literal["text", "json", "markdown"]
ReportFormat = Literal["markdown", "json"]


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
        answer = ask(current_store(settings), log, repos=settings.repo, vllm_version=vllm_version)
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

    store = current_store(settings)
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
