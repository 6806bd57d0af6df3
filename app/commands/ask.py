"""`triage diagnose`, `comment`, `extract` and `report`: a text or a number in, an answer out."""

from __future__ import annotations

import codecs
import io
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, Unpack

import typer

from app.commands.database import DatabaseOption, current_settings, current_store
from app.errors import ConfigError, GitHubError, GoneError, InputError, NotFoundError, TooLargeError
from app.terminal import emit, say

if TYPE_CHECKING:
    from app.config import Settings
    from app.knowledge.diagnosis.diagnose import LogQuestion
    from app.knowledge.diagnosis.shapes import Diagnosis
    from app.knowledge.issue.report import Report

DiagnosisFormat = Literal["text", "json", "markdown"]
TextFormat = Literal["markdown", "json"]


def _check_version(text: str | None) -> str | None:
    from app.extract.versions import check_version

    try:
        return check_version(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


VersionOption = Annotated[str | None, typer.Option(callback=_check_version, help="the vLLM version you run")]
UrlOption = Annotated[
    str | None, typer.Option(envvar="TRIAGE_URL", help="URL of a server to ask instead of the local database")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="write a draft bug report to FILE if no known issue matches"),
]

CHUNK_BYTES = 64 * 1024


def extract(file: Annotated[str, typer.Argument(metavar="FILE|-")] = "-") -> None:
    """Extract facts from issues: JSON Lines in, JSON Lines out; uses no database."""
    from app.extract.jsonl import facts_lines

    failed = False
    with io.TextIOWrapper(_open(file), encoding="utf-8", errors="replace") as lines:
        for facts, fault in facts_lines(lines, "stdin" if file == "-" else file):
            if fault:
                say(fault)
                failed = True
            else:
                emit(facts)
    raise typer.Exit(1 if failed else 0)


def diagnose(
    file: Annotated[str, typer.Argument(metavar="FILE|-")] = "-",
    format_: Annotated[
        DiagnosisFormat | None,
        typer.Option("--format", help="output format; default: text on a terminal, JSON in a pipe"),
    ] = None,
    vllm_version: VersionOption = None,
    gpu: Annotated[str | None, typer.Option(help="GPU; used if the log does not print it")] = None,
    model: Annotated[str | None, typer.Option(help="model; used if the log does not print it")] = None,
    url: UrlOption = None,
    report: ReportOption = None,
    read_by_model: Annotated[
        bool,
        typer.Option("--read-by-model", help="also have your own vLLM server read the masked log"),
    ] = False,
    _database: DatabaseOption = None,
) -> None:
    """Find the known issue behind a crash log.

    Exit 0: same or likely; 3: related or unknown; 1: error, such as a log that cannot be read; 2: wrong usage
    or setting, or no database.
    """
    from app.knowledge.diagnosis.log_input import clean_log, decode_log

    settings = current_settings()
    log = clean_log(decode_log(read_input(file)))
    question: LogQuestion = {
        "repos": settings.repo,
        "vllm_version": vllm_version,
        "gpu": gpu,
        "model": model,
    }
    answer = _diagnosis(settings, url, log, read_by_model=read_by_model, **question)
    shape = format_ or ("text" if sys.stdout.isatty() else "json")
    if shape == "json":
        emit(answer.model_dump_json(indent=2))
    elif shape == "markdown":
        from app.knowledge.diagnosis.markdown import diagnosis_markdown

        emit(diagnosis_markdown(answer))
    else:
        from app.terminal.diagnosis import print_diagnosis

        print_diagnosis(answer, sys.stdout)
    if report is not None:
        _write_draft(answer, report)
    raise typer.Exit(0 if answer.verdict in {"same", "likely"} else 3)


def _write_draft(answer: Diagnosis, path: Path) -> None:
    if not answer.issue_draft:
        known = answer.verdict in {"same", "likely"}
        why = "the failure is reported already" if known else "the next steps say what to correct"
        say(f"no bug report is written: {why}")
        return
    try:
        path.write_text(answer.issue_draft, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    say(f"the draft of a bug report is {path}: read it before you send it")


def comment(
    event: Annotated[Path, typer.Option(metavar="FILE", help="event file of a workflow: GITHUB_EVENT_PATH")],
    url: UrlOption = None,
    format_: Annotated[
        TextFormat, typer.Option("--format", help="json: request body for GitHub's comment API")
    ] = "markdown",
    _database: DatabaseOption = None,
) -> None:
    """Print a comment for a newly opened issue if its failure is known; otherwise nothing. Exit 0."""
    from app.knowledge.diagnosis.markdown import comment_markdown, read_event

    issue = read_event(read_input(str(event)).decode("utf-8", errors="replace"))
    if issue is None:
        say("nothing to say: no opened issue that reports a failure")
        return
    excluded = frozenset({issue.number})
    answer = _diagnosis(
        current_settings(),
        url,
        issue.log,
        repos=(issue.repo,),
        vllm_version=issue.vllm_version,
        exclude=excluded,
    )
    text = comment_markdown(issue, answer)
    if not text:
        say("nothing to say: no known issue, or the report names it itself")
    elif format_ == "json":
        emit(json.dumps({"body": text}))
    else:
        emit(text)


def _diagnosis(
    settings: Settings,
    url: str | None,
    log: str,
    *,
    read_by_model: bool = False,
    **question: Unpack[LogQuestion],
) -> Diagnosis:
    """The answer of a server, or of the own database."""
    if url:
        from app.remote.diagnosis import diagnose_remotely

        return diagnose_remotely(url, log, read_by_model=read_by_model, **question)
    from app.knowledge.diagnosis.diagnose import diagnose_log
    from app.model_reader import log_reader, question_embedder

    reader = log_reader(settings) if read_by_model else None
    if read_by_model and reader is None:
        raise ConfigError("--read-by-model needs TRIAGE_READER_URL and TRIAGE_READER_LOGS=1")
    question["embed"] = question_embedder(settings)
    found = diagnose_log(current_store(settings, asks_server=True), log, **question)
    if reader is not None:
        from app.knowledge.operations.log_reading import read_log_by_model

        found = read_log_by_model(found, reader)
    return found.diagnosis


def _open(file: str) -> BinaryIO:
    try:
        return sys.stdin.buffer if file == "-" else Path(file).open("rb")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None


def read_input(file: str) -> bytes:
    """The input, as it streams; refused as soon as it is over the limit."""
    from app.config import LOG_LIMIT_BYTES

    data = bytearray()
    limit = LOG_LIMIT_BYTES
    if file == "-" and sys.stdin.isatty():
        say("paste the log, then end it with Ctrl-D on a line of its own")
    with _open(file) as handle:
        while chunk := handle.read(CHUNK_BYTES):
            data += chunk
            if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                limit = 2 * LOG_LIMIT_BYTES  # two bytes a character; what it is as UTF-8 is looked at later
            if len(data) > limit + len(codecs.BOM_UTF8):
                name = "the log" if file == "-" else file
                allowed = LOG_LIMIT_BYTES // 1048576
                raise TooLargeError(f"{name} is over the limit of {allowed} MiB: cut the start, keep the end")
    return bytes(data)


def report(
    issue: Annotated[str, typer.Argument(metavar="NUMBER|ISSUE-URL", help="issue to report on")],
    format_: Annotated[TextFormat, typer.Option("--format", help="output format")] = "markdown",
    _database: DatabaseOption = None,
) -> None:
    """Print a report on one issue, fetched if not stored. Exit 1: not available; 2: not an issue."""
    from app.knowledge.issue.address import parse_issue_address
    from app.knowledge.issue.report import report_markdown

    settings = current_settings()
    asked = parse_issue_address(issue, settings.repo)
    found = _stored_report(settings, asked.repo, asked.number)
    emit(found.model_dump_json(indent=2) if format_ == "json" else report_markdown(found))


def _stored_report(settings: Settings, repo: str, number: int) -> Report:
    from app.knowledge.issue.report import make_report
    from app.server.rounds import github_client
    from ingest.one_issue import fetch_with_links

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
