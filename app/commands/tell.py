"""`triage digest`: a week, told."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from app.commands.opened import current_store
from app.config import load_settings
from app.console import emit
from app.errors import NotFoundError

DigestFormat = Literal["html", "markdown", "json"]


def digest(
    week: Annotated[
        str | None, typer.Option(metavar="WEEK", help="such as 2026-W46; without it the newest whole one")
    ] = None,
    repo: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="in place of the first of TRIAGE_REPO")
    ] = None,
    format_: Annotated[
        DigestFormat, typer.Option("--format", help="how to tell it; html is fit to be mailed")
    ] = "markdown",
) -> None:
    """What broke, what got fixed and what to do in a week. Exit 1: nothing is stored; 2: no such week."""
    from app.knowledge.digest import make_digest
    from app.knowledge.digest_markdown import digest_markdown
    from app.knowledge.growth import newest_whole_week
    from app.knowledge.iso_week import IsoWeek

    asked = IsoWeek.parse(week) if week is not None else None
    settings = load_settings()
    store = current_store(settings)
    where = repo or settings.default_repo
    chosen = asked or newest_whole_week(store, where)
    if chosen is None:
        raise NotFoundError(f"no dated issue of {where} is stored: `triage sync` or `triage import` first")
    told = make_digest(store, where, chosen)
    if format_ == "json":
        emit(told.model_dump_json(indent=2))
    elif format_ == "markdown":
        emit(digest_markdown(told))
    else:
        from app.web.digest import digest_email

        emit(digest_email(told))
