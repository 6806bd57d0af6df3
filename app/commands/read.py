"""`triage read`: has stored issues read by the team's own language model."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.database import DatabaseOption, current_settings, current_store
from app.errors import ConfigError
from app.terminal.console import emit, say

if TYPE_CHECKING:
    from app.config import Settings
    from app.knowledge.operations.model_reading import ReadResult
    from app.store.session import Store


def read(
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]…", help="only these, of the first repository")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="most issues to ask about")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count what would be asked")] = False,
    _database: DatabaseOption = None,
) -> None:
    """Have issues read by your own vLLM (TRIAGE_READER_URL). Exit 1: it gave out before all was read."""
    from app.errors import ReaderError
    from app.server.background_reading import reader_client

    settings = current_settings()
    if settings.reader_url is None:
        raise ConfigError("TRIAGE_READER_URL is not set: it names your vLLM, such as http://gpu-1:8000")
    repos = settings.repo[:1] if numbers else settings.repo
    complete = True
    with closing(current_store(settings)) as store, reader_client(settings) as client:
        for repo in repos:
            if dry_run:
                from app.knowledge.operations.model_reading import plan_reading

                plan = plan_reading(store, repo, client, numbers=numbers or (), limit=limit)
                emit(f"{repo}: {plan.issues:,} issues, about {plan.tokens:,} tokens to {plan.model}")
                continue
            try:
                result = _read(settings, store, repo, numbers or [], limit)
            except ReaderError as error:
                say(f"{repo}: {error.message}")
                complete = False
                continue
            if result is None:
                say(
                    f"{repo}: another process reads just now, and nothing is asked twice; see `triage status`"
                )
                complete = False
                continue
            say(f"{repo}: {result.words}")
            complete = complete and not result.stopped
    raise typer.Exit(0 if complete else 1)


def _read(
    settings: Settings, store: Store, repo: str, numbers: list[int], limit: int | None
) -> ReadResult | None:
    """Read; None where another process does, unless a person names the issues that must not wait for it."""
    from app.knowledge.operations.model_reading import read_issues
    from app.server.background_reading import reader_client
    from app.store.engine.sync_lock import READING, sync_lock
    from app.terminal.progress import progress

    used = [0]
    with sync_lock(store.engine, READING) as held:
        if not (held or numbers):
            return None
        with (
            reader_client(settings) as client,
            progress(lambda: used[0] or None, unit="tokens used") as report,
        ):
            return read_issues(
                store,
                repo,
                client,
                numbers=numbers,
                limit=limit,
                tokens_per_day=settings.reader_tokens_per_day,
                parallel=settings.reader_parallel,
                report=report,
                on_tokens=lambda tokens: used.__setitem__(0, tokens),
            )
