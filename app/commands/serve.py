"""`triage up`, `serve` and `migrate`: set a base up and serve it."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Annotated

import typer

from app.config import load_settings
from app.errors import ConfigError
from app.terminal.console import say

Host = Annotated[str, typer.Option(help="address to listen on")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="port to listen on")]


def up(host: Host = "127.0.0.1", port: Port = 8000) -> None:
    """Set up, load the starter cards, sync in the background, serve: the whole thing in one word."""
    from app.knowledge.freshness import overview
    from app.knowledge.indexing.batches import load_starter_set
    from app.server.run import check_port, serve
    from app.starter.cards import REPO as CARDS_REPO
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    settings = load_settings()
    check_port(host, port)
    with closing(open_store(settings.database_url)) as store:
        migrate_store(store)
        if CARDS_REPO in settings.repo:
            load_starter_set(store)
        view = overview(store, settings.default_repo)
    if view.is_starter_only:
        say(f"the data is the starter set: {view.issues} known failures; a sync brings the rest")
    else:
        say(f"{view.issues} issues and {view.pulls} pull requests of {settings.default_repo} are stored")
    if settings.github_token is None:
        say("no TRIAGE_GITHUB_TOKEN: GitHub allows 60 requests an hour; with a token it is 5,000")
    serve(settings, host=host, port=port, workers=1, sync_every_s=900.0, sync_now=True)


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="processes that answer")] = 1,
    sync_every: Annotated[str | None, typer.Option(metavar="15m", help="sync beside serving")] = None,
) -> None:
    """Serve only, or with the background sync."""
    from app.server.run import serve as run

    every_s = _duration_s(sync_every) if sync_every else None
    run(load_settings(), host=host, port=port, workers=workers, sync_every_s=every_s, sync_now=False)


def _duration_s(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})(s|m|h)", text)
    if not found or int(found.group(1)) == 0:
        raise ConfigError(f"--sync-every {text[:20]!r}: give a number and s, m or h, such as 15m")
    return float(found.group(1)) * {"s": 1, "m": 60, "h": 3600}[found.group(2)]


def migrate() -> None:
    """Bring the database to the newest schema; safe to repeat."""
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    store = open_store(load_settings().database_url)
    say(f"the schema is {migrate_store(store)}")


def mcp() -> None:
    """Speak MCP on stdin and stdout: the tools of a chatbot that runs on this machine."""
    from app.commands.database import current_store
    from app.knowledge.freshness import overview
    from app.web.deps import Services
    from app.web.mcp.server import build_server

    settings = load_settings()
    store = current_store(settings)
    if not overview(store, settings.default_repo).issues:
        say("nothing is stored yet: `triage up` loads the starter cards, `triage sync` the rest")
    with closing(store):
        build_server(Services(settings, store)).run("stdio")
