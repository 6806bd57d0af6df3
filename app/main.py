"""The web application: opens, wires, closes; no logic."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from app import __version__
from app.config import Settings
from app.errors import StoreError
from app.knowledge.kept_logs import forget_old_logs
from app.paths import static_dir
from app.store.session import Store, open_store
from app.web import (
    api,
    handlers,
    health,
    judgements,
    kept,
    metrics,
    openapi,
    pages,
    regressions,
    report,
    webhooks,
)
from app.web.fetching import Fetcher, FetchIssue
from app.web.headers import SecurityHeaders
from app.web.intake import Intake, TakeDelivery
from ingest.client import GitHubClient
from ingest.on_demand import fetch_with_links
from ingest.webhook import take_delivery

Background = Callable[[threading.Event], None]

THREADS = 16
"""Requests worked on at a time; each may hold a log of 10 MiB in several copies."""

_BACKGROUND_STOP_S = 10.0
_FETCH_WAIT_S = 5.0
"""A person waits for a fetch; nobody sits out a spent budget."""


def fetch_now(settings: Settings, store: Store, repo: str, number: int, /) -> bool:
    """Fetch an issue that somebody asked for; False if GitHub does not have it."""
    token = settings.github_token.get_secret_value() if settings.github_token else None
    with GitHubClient(settings.github_api_url, token, max_wait_s=_FETCH_WAIT_S) as client:
        return fetch_with_links(store, client, repo, number)


def create_app(
    settings: Settings,
    store: Store | None = None,
    *,
    background: Background | None = None,
    take: TakeDelivery = take_delivery,
    fetch: FetchIssue = fetch_now,
) -> FastAPI:
    """The application, ready for a server.

    Args:
        settings: what the operator chose.
        store: an open archive, which stays open; without one it is opened and closed here.
        background: runs beside the server in a thread of its own until the event is set.
        take: stores what a webhook delivery brings.
        fetch: brings an issue that is asked for and not stored.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        app.state.store = store or open_store(settings.database_url)
        with suppress(StoreError):  # /readyz tells what is wrong with it
            forget_old_logs(app.state.store)
        app.state.intake = Intake(partial(take, app.state.store, settings.repo))
        app.state.fetcher = Fetcher(partial(fetch, settings, app.state.store))
        stop = threading.Event()
        thread = threading.Thread(target=background, args=(stop,), name="background", daemon=True)
        if background is not None:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            if background is not None:
                thread.join(_BACKGROUND_STOP_S)
            app.state.intake.close()
            if store is None:
                app.state.store.close()

    app = FastAPI(
        title="vLLM Triage",
        description="A vLLM crash log in; the known issue, what helps now and the state of the fix out.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.metrics = metrics.Metrics()
    handlers.install(app)
    openapi.install(app)
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(metrics.MeasureRequests, metrics=app.state.metrics)
    for room in (api, health, judgements, kept, metrics, pages, regressions, report, webhooks):
        app.include_router(room.router)
    app.mount("/static", StaticFiles(directory=static_dir()), name="static")
    return app
