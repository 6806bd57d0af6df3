"""`triage up`, `serve` and `migrate`: set up a database and serve it."""

from __future__ import annotations

import errno
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.database import DatabaseOption, current_settings, current_store, new_database
from app.errors import ConfigError
from app.terminal import say

if TYPE_CHECKING:
    from app.config import Settings

Host = Annotated[str | None, typer.Option(help="address to listen on; default: TRIAGE_HOST")]
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="port to listen on; default: TRIAGE_PORT")]
Workers = Annotated[
    int | None, typer.Option(min=1, max=64, help="number of worker processes; default: TRIAGE_WORKERS")
]
SyncEvery = Annotated[
    str | None, typer.Option(metavar="15m", help="sync interval; default: TRIAGE_SYNC_EVERY")
]


From = Annotated[
    str | None,
    typer.Option("--from", metavar="URL", help="initial snapshot; default: TRIAGE_SNAPSHOT_URL"),
]


def up(
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
    sync_every: SyncEvery = None,
    snapshot_url: From = None,
    _database: DatabaseOption = None,
) -> None:
    """Set up the database, load the starter cards, sync in the background, and serve."""
    from app.config import address_without_password, override
    from app.terminal.events import announce, set_up_logging

    override(host=host, port=port, workers=workers, sync_every=sync_every, snapshot_url=snapshot_url)
    settings = current_settings()
    if settings.sync_every is None:
        settings = settings.model_copy(update={"sync_every": "15m"})
    set_up_logging(settings.log_level, settings.log_format)
    _check_port(settings.host, settings.port)
    if settings.snapshot_url:
        _start_with(settings, settings.snapshot_url)
    announce(f"setting up the database {address_without_password(settings.database_url)}")

    from app.knowledge.freshness import overview
    from app.knowledge.indexing.batches import load_starter_set
    from app.server.run import serve as run
    from app.starter.card import REPO as CARDS_REPO
    from app.store.schema import current_revision
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    with closing(open_store(settings.database_url)) as store:
        if current_revision(store) is None:
            announce(new_database(settings))
        migrate_store(store)
        if CARDS_REPO in settings.repo:
            load_starter_set(store)
        view = overview(store, settings.default_repo)
    if view.is_starter_only:
        announce(f"the data is the starter set: {view.issues} known failures; all other issues are missing")
    else:
        announce(f"{view.issues} issues and {view.pulls} pull requests of {settings.default_repo} are stored")
    if settings.github_token is None:
        announce("no TRIAGE_GITHUB_TOKEN: GitHub allows 60 requests an hour; with a token it is 5,000")
        for line in _THREE_WAYS if view.is_starter_only else ():
            announce(line)
    run(settings, sync_now=True)


_THREE_WAYS = (
    "there are three ways to have the rest. In a minute: triage up --from URL, where a snapshot is published",
    "in an hour: export TRIAGE_GITHUB_TOKEN=..., a token without any scope, then triage up",
    "in a day: leave this running; newest issues come first",
)


def _start_with(settings: Settings, url: str) -> None:
    """Replace a database that holds no more than the starter set by a snapshot."""
    from app.knowledge.freshness import overview
    from app.remote.snapshot import restore_snapshot
    from app.store.engine.sqlite_file import sqlite_file
    from app.store.schema import current_revision
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store
    from app.terminal.events import announce
    from app.terminal.progress import progress

    file = sqlite_file(settings.database_url)
    if file is None or file.exists():
        with closing(open_store(settings.database_url)) as store:
            if current_revision(store) is not None:
                migrate_store(store)
                view = overview(store, settings.default_repo)
                if view.issues and not view.is_starter_only:
                    announce("issues are stored already: the snapshot is not fetched")
                    return
    with progress() as report:
        manifest, restored = restore_snapshot(url, settings.database_url, report, force=True)
    announce(f"the snapshot of {manifest.made_at:%Y-%m-%d} is in place: {manifest.issues:,} issues, checked")
    if restored.aside is not None:
        announce(f"what was there before is kept as {restored.aside}")


def serve(
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
    sync_every: SyncEvery = None,
    _database: DatabaseOption = None,
) -> None:
    """Serve, optionally with the background sync."""
    from app.config import override

    override(host=host, port=port, workers=workers, sync_every=sync_every)
    settings = current_settings()
    _check_port(settings.host, settings.port)
    current_store(settings).close()
    from app.server.run import serve as run

    run(settings, sync_now=False)


def migrate(
    _database: DatabaseOption = None,
) -> None:
    """Migrate the database to the newest schema, or create it; safe to repeat."""
    from app.config import address_without_password
    from app.store.engine.sqlite_file import sqlite_file
    from app.store.schema import current_revision
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    settings = current_settings()
    file = sqlite_file(settings.database_url)
    if file is not None and "database_url" in settings.model_fields_set and not file.parent.exists():
        raise ConfigError(
            f"no folder {file.parent}: make it, or name the database with --database or TRIAGE_DATABASE_URL"
        )
    with closing(open_store(settings.database_url)) as store:
        is_new = current_revision(store) is None
        revision = migrate_store(store)
    where = address_without_password(settings.database_url)
    say(f"the schema is {revision}" + (f"; {where} is a new, empty database" if is_new else ""))


def mcp(
    _database: DatabaseOption = None,
) -> None:
    """Serve MCP on stdin and stdout for a chatbot on this machine."""
    from app.knowledge.freshness import overview
    from app.web.deps import Services
    from app.web.mcp.server import build_server

    settings = current_settings()
    store = current_store(settings)
    if not overview(store, settings.default_repo).issues:
        say("nothing is stored yet: `triage up` loads the starter cards, `triage sync` the rest")
    with closing(store):
        build_server(Services(settings, store)).run("stdio")


def _check_port(host: str, port: int) -> None:
    """Raise ConfigError if nothing can listen there; the server's own message comes late and long."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            busy = error.errno == errno.EADDRINUSE
            fault = "is in use; choose another with --port" if busy else f"cannot be used: {error.strerror}"
            raise ConfigError(f"port {port} on {host} {fault}") from None
