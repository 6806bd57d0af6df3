"""`triage read`: has stored issues read by the team's own models."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.database import DatabaseOption, current_settings, current_store
from app.errors import ConfigError
from app.terminal.console import emit, say

if TYPE_CHECKING:
    from app.config import Settings
    from app.store.session import Store


def read(
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]…", help="only these, of the first repository")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="most issues to ask about")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count what would be asked")] = False,
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
                if dry_run:
                    _plan(settings, store, repo, numbers or [], limit)
                    continue
                if settings.embeddings_url is not None and not numbers:
                    _embed(settings, store, repo, limit)
                if settings.reader_url is not None:
                    complete = _read(settings, store, repo, numbers or [], limit) and complete
            except ReaderError as error:
                say(f"{repo}: {error.message}")
                complete = False
    raise typer.Exit(0 if complete else 1)


def _plan(settings: Settings, store: Store, repo: str, numbers: list[int], limit: int | None) -> None:
    from app.knowledge.operations.model_reading import plan_reading
    from app.model_reader.client import reader_client

    with reader_client(settings) as client:
        plan = plan_reading(store, repo, client, numbers=numbers, limit=limit)
    emit(f"{repo}: {plan.issues:,} issues, about {plan.tokens:,} tokens to {plan.model}")


def _embed(settings: Settings, store: Store, repo: str, limit: int | None) -> None:
    from app.knowledge.operations.embedding import embed_issues
    from app.model_reader.embeddings import embedder
    from app.terminal.progress import progress

    with embedder(settings) as client, progress() as report:
        say(f"{repo}: {embed_issues(store, repo, client, limit=limit, report=report).words}")


def _read(settings: Settings, store: Store, repo: str, numbers: list[int], limit: int | None) -> bool:
    """Read, and say what came of it; whether all was read that there was to read."""
    from app.knowledge.operations.model_reading import read_issues
    from app.model_reader.client import reader_client
    from app.terminal.progress import progress

    used = [0]
    with (
        reader_client(settings, parallel=settings.reader_parallel) as client,
        progress(lambda: used[0] or None, unit="tokens used") as report,
    ):
        result = read_issues(
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
    say(f"{repo}: {result.words}")
    return not result.stopped
