"""The web application: assemble middleware, routes and services; no logic."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from app import __version__
from app.config import Settings, shared_metrics_folder
from app.errors import StoreError, TriageError
from app.knowledge.cluster.families import families
from app.knowledge.cluster.view import clusters as failure_clusters
from app.knowledge.digest.digest import archive
from app.knowledge.freshness import reader_overview
from app.knowledge.issue.browse import IssueQuery, browse
from app.knowledge.operations.log_reading import read_log_by_model
from app.knowledge.operations.retention import forget_old, forget_regularly
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.upgrade import affecting
from app.knowledge.version.regressions import regressions
from app.model_reader import log_reader, question_embedder
from app.paths import static_dir
from app.store.session import Store, open_store
from app.web.answers import openapi, problems
from app.web.deps import WRITE_WAIT_S, AnswerCache, Services
from app.web.headers import SecurityHeaders
from app.web.mcp import server as mcp_server
from app.web.middleware import metrics
from app.web.middleware.client import ForwardedClient, UnderPrefix
from app.web.middleware.conditional import ConditionalReads
from app.web.middleware.fair_shares import LimitReceiving, TakeTurns
from app.web.middleware.metrics import WatchRequests
from app.web.middleware.origins import CrossOrigin
from app.web.middleware.rate_limits import LimitRequests
from app.web.routes import (
    clusters,
    diagnose,
    digest,
    issue,
    issues,
    judgements,
    report,
    service,
    versions,
    webhooks,
)
from app.web.routes.report import Fetcher, FetchIssue
from app.web.routes.webhooks import Intake, TakeDelivery
from ingest.one_issue import FetchForVisitors
from ingest.webhook import process_delivery

Background = Callable[[threading.Event], object]

THREADS = 2
"""Threads for requests in one process. More would only compete for the GIL, which delays all of them, and
each thread takes 10 to 15 MB."""

COMPRESSION = 4
"""gzip level: 9, the default, makes responses 2 % smaller but takes a quarter longer."""

_ROUTES = (
    issue,
    diagnose,
    issues,
    digest,
    service,
    judgements,
    metrics,
    versions,
    report,
    clusters,
    webhooks,
)
"""Modules with routes; the order matters, as paths ending in .md must match before their pages."""
_BACKGROUND_STOP_S = 10.0
_COMMON_MODEL = "Qwen/Qwen3-8B"
"""Of a family with many reports, so that comparing it loads all rules."""


def create_app(
    settings: Settings,
    store: Store | None = None,
    *,
    background: Background | None = None,
    take: TakeDelivery = process_delivery,
    fetch: FetchIssue | None = None,
) -> FastAPI:
    """Create the application.

    Args:
        store: an open store, which is not closed; by default one is opened and closed with the application.
        background: runs in a separate thread until its event is set.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        opened = store or open_store(settings.database_url)
        try:
            with _at_work(app, opened, take, fetch or FetchForVisitors(), background) as services:
                async with mcp_server.speaking(services) as app.state.mcp:
                    yield
        finally:
            if store is None:
                opened.close()

    app = openapi.DescribedApp(
        title="vLLM Triage",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,  # `app.web.routes.service` answers there
        docs_url=None,
        redoc_url=None,
        servers=[{"url": settings.root_path}] if settings.root_path else None,
    )
    app.state.settings = settings
    app.state.metrics = metrics.Metrics(shared_metrics_folder())
    problems.install(app)
    _add_middleware(app, settings)
    for routes in _ROUTES:
        app.router.routes.extend(routes.router.routes)
    app.router.routes.append(mcp_server.ROUTE)
    app.mount("/static", StaticFiles(directory=static_dir()), name="static")
    return app


def _add_middleware(app: FastAPI, settings: Settings) -> None:
    """Add the middleware; the last one added is the outermost."""
    app.add_middleware(ConditionalReads)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=COMPRESSION)
    app.add_middleware(
        LimitRequests, anonymous=settings.rate_limit, keys=settings.api_keys, shared=settings.redis_url
    )
    if settings.is_cross_origin:
        app.add_middleware(CrossOrigin)
    app.add_middleware(TakeTurns)
    app.add_middleware(LimitReceiving)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(ForwardedClient, trusted=settings.trusted_proxies)
    app.add_middleware(WatchRequests, metrics=app.state.metrics)
    if settings.root_path:
        app.add_middleware(UnderPrefix, prefix=settings.root_path)


@contextmanager
def _at_work(
    app: FastAPI, store: Store, take: TakeDelivery, fetch: FetchIssue, background: Background | None
) -> Iterator[Services]:
    """Set up the application's state (services, intake, fetcher, metrics) and yield the services.

    One thread purges expired data meanwhile, another one runs `background`.
    """
    state, settings = app.state, app.state.settings
    impatient = replace(store, write_wait_s=WRITE_WAIT_S)
    embed, reader = question_embedder(settings), log_reader(settings)
    state.services = Services(
        settings,
        impatient,
        AnswerCache(store.data_version),
        state.metrics.count_verdict,
        embed=embed,
        read_log=partial(read_log_by_model, client=reader) if reader is not None else None,
    )
    state.intake = Intake(partial(take, store, settings.repo))
    state.fetcher = Fetcher(partial(fetch, settings))
    state.metrics.watch(store, settings.repo, state.intake.waiting_bytes)
    if settings.reader_url is not None:
        state.metrics.watch_reader(
            partial(reader_overview, store, settings.repo, settings.reader_tokens_per_day)
        )
    with suppress(StoreError):  # /readyz says what is wrong with it
        forget_old(store)
    _load_lists(impatient, settings.default_repo)
    try:
        with threads_beside(retention=partial(forget_regularly, store), background=background):
            yield state.services
    finally:
        state.intake.close()
        for client in (embed, reader):
            if client is not None:
                client.close()


def _load_lists(store: Store, repo: str) -> None:
    """Load what all lists share, and the rules that compare stacks, so that no visitor waits for it."""
    with suppress(TriageError):  # whoever asks for a list is told what is wrong
        browse(store, repo, IssueQuery(), facets=True)
        archive(store, repo)
        families(store, repo, limit=1)
        failure_clusters(store, repo, alive=True, limit=1)
        for newest in regressions(store, repo).versions[:1]:
            affecting(store, repo, Stack(vllm=newest.version, model=_COMMON_MODEL))


@contextmanager
def threads_beside(**runs: Background | None) -> Iterator[None]:
    """Run each function in a thread during the `with` block; then set the event that stops them."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=run, args=(stop,), name=name, daemon=True)
        for name, run in runs.items()
        if run is not None
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(_BACKGROUND_STOP_S)
