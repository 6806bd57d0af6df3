"""`triage backup`, `restore`, `copy` and `doctor`: keep a database safe."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.commands.database import DatabaseOption, current_settings, current_store, database_of
from app.errors import ConfigError, StoreError
from app.terminal import emit, say

if TYPE_CHECKING:
    from app.knowledge.operations.doctor import Examination

DoctorFormat = Literal["text", "json"]
Force = Annotated[bool, typer.Option("--force", help="overwrite existing data")]


def backup(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="the file to write")],
    force: Force = False,
    _database: DatabaseOption = None,
) -> None:
    """Write a verified backup of the live database to one file; servers and syncs keep running."""
    from app.store.backup.backup import back_up
    from app.store.session import open_store
    from app.terminal.progress import progress

    with closing(open_store(database_of(current_settings()))) as store, progress() as report:
        rows = back_up(store, path, report, force=force)
    size = path.stat().st_size / (1 << 20)
    say(f"{path}: {sum(rows.values()):,} rows, {size:,.0f} MiB, checked")


def publish(
    target: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="folder, or file name ending in .gz")],
    _database: DatabaseOption = None,
) -> None:
    """Write a verified public snapshot and its manifest.json: no votes, judgements, logs or secrets."""
    from app.extract.reader import RULES_VERSION
    from app.store.backup.snapshot import write_snapshot
    from app.store.session import open_store
    from app.terminal.progress import progress

    with closing(open_store(database_of(current_settings()))) as store, progress() as report:
        manifest = write_snapshot(store, target, rules=RULES_VERSION, report=report)
    size = manifest.size_bytes / (1 << 20)
    say(f"{manifest.file}: {manifest.issues:,} issues, {size:,.0f} MiB, sha256 {manifest.sha256}")


def restore(
    path: Annotated[
        str, typer.Argument(metavar="PATH|URL", help="output of `triage backup` or `triage publish`")
    ],
    force: Force = False,
    _database: DatabaseOption = None,
) -> None:
    """Replace the database by a verified backup or snapshot; servers and syncs must be stopped."""
    from app.knowledge.labels import plural
    from app.knowledge.operations.retention import keep_out
    from app.remote.snapshot import restore_snapshot
    from app.store.backup.backup import restore as put_back
    from app.store.session import open_store
    from app.terminal.progress import progress

    url = current_settings().database_url
    forgotten = _kept_out(url)
    with progress() as report:
        if path.startswith(("http://", "https://")):
            _, restored = restore_snapshot(path, url, report, force=force)
        else:
            restored = put_back(Path(path), url, report, force=force)
    say(f"{sum(restored.rows.values()):,} rows are back, checked")
    if forgotten:
        with closing(open_store(url)) as store:
            again = keep_out(store, forgotten)
        say(f"{plural(again, 'issue')} that the replaced database kept out: taken down here too")
    if restored.aside is not None:
        say(f"what was there before is kept as {restored.aside}")


def _kept_out(url: str) -> list[tuple[str, int]]:
    """Return the issues that the database to be replaced keeps out, as an older backup may contain them."""
    from app.knowledge.operations.retention import kept_out

    try:
        return kept_out(url)
    except StoreError as error:
        say(f"what was taken down with --keep-out may come back: the old database is unreadable ({error})")
        return []


def copy(
    source: Annotated[str, typer.Option("--from", metavar="URL", help="database to read from")],
    target: Annotated[str, typer.Option("--to", metavar="URL", help="empty database to write to")],
) -> None:
    """Copy a database to another engine or place and verify it; the source stays and may be in use."""
    from app.config import database_address
    from app.store.backup.copy import copy_database
    from app.store.engine.sqlite_file import sqlite_file
    from app.store.session import open_store
    from app.terminal.progress import progress

    for name, url in (("--from", source), ("--to", target)):
        try:
            database_address(url)
        except ValueError as error:
            raise ConfigError(f"{name} {error}") from None
    source, target = database_address(source), database_address(target)
    file = sqlite_file(source)
    if file is not None and not file.exists():
        raise ConfigError(f"--from: there is no file {file}")
    with closing(open_store(source)) as old, closing(open_store(target)) as new, progress() as report:
        copied = copy_database(old, new, report)
    say(f"{sum(copied.values()):,} rows in {len(copied)} tables are copied; row counts agree")


def forget(
    what: Annotated[str, typer.Argument(metavar="NUMBER|/d/ID", help="issue, or page of a stored log")],
    keep_out: Annotated[bool, typer.Option("--keep-out", help="never store this issue again")] = False,
    _database: DatabaseOption = None,
) -> None:
    """Delete the text of an issue or a stored log from the database, its index and its quotes."""
    from app.knowledge.issue.address import parse_issue_address
    from app.knowledge.operations.retention import forget_issue, forget_kept_log

    settings = current_settings()
    with closing(current_store(settings)) as store:
        if forget_kept_log(store, what):
            say("the kept log is deleted")
            return
        asked = parse_issue_address(what, settings.repo)
        forget_issue(store, asked.repo, asked.number, keep_out=keep_out)
    on_github = "a sync brings it back if GitHub still has it and it was not kept out before"
    later = "no sync brings it back" if keep_out else on_github
    say(f"#{asked.number} of {asked.repo} holds no text any more; {later}. Backups made before still hold it")


def doctor(
    format_: Annotated[DoctorFormat | None, typer.Option("--format", help="output format")] = None,
    _database: DatabaseOption = None,
) -> None:
    """Check this installation and suggest fixes. Exit 0: no fault; 1: faults."""
    from app.knowledge.operations.doctor import examine

    found = examine(current_settings())
    shape = format_ or ("text" if sys.stdout.isatty() else "json")
    emit(found.model_dump_json(indent=2) if shape == "json" else _as_text(found))
    raise typer.Exit(0 if found.is_sound else 1)


def _as_text(found: Examination) -> str:
    from app.knowledge.labels import plural

    lines = [f"looked at {item}" for item in found.looked_at]
    for finding in sorted(found.findings, key=lambda finding: finding.level, reverse=True):
        lines += ["", f"{finding.level.upper()}  {finding.thing}: {finding.fault}", f"       {finding.do}"]
    faults = sum(finding.level == "fault" for finding in found.findings)
    advice = plural(len(found.findings) - faults, "piece of advice", "pieces of advice")
    lines += ["", f"{plural(faults, 'fault')}, {advice}" if found.findings else "all is well"]
    return "\n".join(lines)
