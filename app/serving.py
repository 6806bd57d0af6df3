"""Running the service: the server, and the sync that runs beside it.

The background sync runs in the process that was started; further workers only answer. `up` says in plain
lines what it serves, so that a person sees at once whether GitHub was reached.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable
from functools import partial

import uvicorn
from fastapi import FastAPI

from app.config import Settings, load_settings
from app.console import say
from app.errors import ConfigError, TriageError, UnreachableError
from app.knowledge.overview import overview
from app.main import create_app
from app.store.schema import check_current
from app.store.session import Store, open_store
from ingest.client import MAX_WAIT_S, GitHubClient, quiet_retries
from ingest.pipeline import quiet
from ingest.sync import SyncResult, sync

STOP_TIMEOUT_S = 10
BACKGROUND_WAIT_S = 60.0
"""A sync beside a server does not sit out a spent budget; the next round goes on."""


def github_client(settings: Settings, *, patient: bool = True, url: str | None = None) -> GitHubClient:
    """A client for the configured GitHub. An impatient one waits for no spent budget."""
    token = settings.github_token.get_secret_value() if settings.github_token else None
    wait_s = MAX_WAIT_S if patient else BACKGROUND_WAIT_S
    quiet_retries()
    return GitHubClient(url or settings.github_api_url, token, max_wait_s=wait_s)


def check_port(host: str, port: int) -> None:
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


def background_sync(
    settings: Settings, store: Store, every_s: float | None, *, first: bool
) -> Callable[[threading.Event], None]:
    """A function that syncs all repositories now (`first`) and then every so often, until stopped."""

    def run(stop: threading.Event) -> None:
        pause = 0.0 if first else (every_s or 0.0)
        while not stop.wait(pause):
            for repo in settings.repo:
                sync_quietly(settings, store, repo)
            if every_s is None:
                return
            pause = every_s

    return run


def sync_quietly(settings: Settings, store: Store, repo: str) -> None:
    """One sync whose outcome is said in a line; a failure never stops the server."""
    try:
        with github_client(settings, patient=False) as client:
            result = sync(store, client, repo, report=quiet)
        say(outcome_line(result, store, serving=True))
    except TriageError as error:
        say(f"sync of {repo} failed: {error.message}")


def outcome_line(result: SyncResult, store: Store, *, serving: bool = False) -> str:
    """What a sync did, in a line; `serving` tells that a server goes on with what is stored."""
    figures = f"requests {result.requests}, not modified {result.not_modified}"
    if result.remaining is not None:
        figures += f", remaining {result.remaining}"
    if result.error is None:
        stored = f"{result.issues} issues and pull requests, {result.comments} comments"
        return f"synced {result.repo}: {stored}, {result.releases} releases; {figures}"
    view = overview(store, result.repo)
    if isinstance(result.error, UnreachableError):
        if not serving:
            stored = f"{view.issues} issues were stored before"
            return f"GitHub could not be reached; {stored}. {result.error.message}"
        what = "the starter set" if view.is_starter_only else "what was stored before"
        return f"GitHub could not be reached: serving {what} ({view.issues} issues). Run `triage sync` later."
    return f"sync of {result.repo} stopped: {result.error.message} What was fetched is stored; {figures}"


def serve(
    settings: Settings, *, host: str, port: int, workers: int, sync_every_s: float | None, sync_now: bool
) -> None:
    """Serve until stopped.

    Raises:
        ConfigError: the port cannot be used.
        SchemaError: the database is not of this version.
    """
    check_port(host, port)
    store = open_store(settings.database_url)
    check_current(store)
    wants_sync = sync_now or sync_every_s is not None
    background = background_sync(settings, store, sync_every_s, first=True) if wants_sync else None
    run = partial(
        uvicorn.run, host=host, port=port, log_level="warning", server_header=False,
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )  # fmt: skip
    say(f"serving on http://{'[' + host + ']' if ':' in host else host}:{port} (Ctrl-C stops)")
    if workers <= 1:
        run(create_app(settings, store, background=background))
        return
    stop = threading.Event()
    if background is not None:
        threading.Thread(target=background, args=(stop,), name="background", daemon=True).start()
    try:
        run("app.serving:worker_app", factory=True, workers=workers)
    finally:
        stop.set()


def worker_app() -> FastAPI:
    """The application of one worker process; settings come from the environment."""
    return create_app(load_settings())
