"""`triage status` and `bench`: how a base is, and how well it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.commands.opened import current_store
from app.config import load_settings
from app.console import emit, say


def bench_diagnose(
    as_json: Annotated[bool, typer.Option("--json", help="all figures as JSON")] = False,
    write: Annotated[Path | None, typer.Option(help="put the table between the marks of this file")] = None,
) -> None:
    """How well logs find their issue, beside what search libraries reach; takes some minutes."""
    from app.bench.diagnose import bench_diagnose as measure

    settings = load_settings()
    store = current_store(settings)
    emit(measure(store, settings.default_repo, tell=say, as_json=as_json, write=write))


def status() -> None:
    """Whether a sync runs, the last ones, freshness, cursors and what is stored, as JSON."""
    from app.knowledge.status import status as ask

    settings = load_settings()
    found = ask(current_store(settings), settings.repo)
    emit(found.model_dump_json(indent=2))
