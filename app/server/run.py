"""Run the server and its background sync.

The first process starts the background sync in a separate process; workers only handle requests.
"""

import ctypes
import gc
import tempfile
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from app.config import Settings, load_settings, share_metrics
from app.errors import ServerError
from app.main import create_app, threads_beside
from app.server.background import Background, background_sync, reading_apart, round_apart
from app.server.connections import BACKLOG, TimedProtocol, raise_file_limit
from app.server.workers import Workers, bind, end_on_hangup, end_with_parent, finishing_on_sigterm
from app.store.schema import check_current
from app.store.session import open_store
from app.terminal.events import announce, log_libraries, set_up_logging
from app.web.headers import SpreadConnections
from app.web.views.render import load_pages

STOP_TIMEOUT_S = 10
"""Time to finish the requests in progress when the server stops."""
WORKER_TIMEOUT_S = 30
"""An unresponsive worker is replaced after this time; on a busy machine a healthy one may be slow."""
_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 128 * 1024


def serve(settings: Settings, *, sync_now: bool) -> None:
    """Serve until stopped, with the host, port and number of workers in the settings.

    Args:
        sync_now: start with a sync, even if no repeated sync is configured.

    Raises:
        SchemaError: the database is not of this version.
        ServerError: a worker process could not start.
    """
    host, port, sync_every_s = settings.host, settings.port, settings.sync_every_s
    set_up_logging(settings.log_level, settings.log_format)
    store = open_store(settings.database_url)
    check_current(store)
    wants_sync = sync_now or sync_every_s is not None
    background = _background(settings, sync_every_s) if wants_sync else None
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "log_config": None,
        "log_level": "warning",
        "server_header": False,
        "http": TimedProtocol,
        "ws": "none",
        "access_log": False,  # requests are logged by `app.web.middleware.metrics`
        # `app.web.middleware.client` reads forwarding headers, from the configured proxies only.
        "proxy_headers": False,
        "forwarded_allow_ips": list(settings.trusted_proxies),
        "backlog": BACKLOG,
        "timeout_graceful_shutdown": STOP_TIMEOUT_S,
    }
    announce(f"serving on http://{'[' + host + ']' if ':' in host else host}:{port} (Ctrl-C stops)")
    if settings.workers > 1:
        _serve_by_workers(options | {"workers": settings.workers}, background)
    else:
        _prepare()
        end_on_hangup()
        with finishing_on_sigterm():
            uvicorn.run(create_app(settings, store, background=background), **options)
    announce("stopped: all requests were answered")


def _background(settings: Settings, every_s: float | None) -> Background:
    """Return the repeated sync, in parallel with the operator's models if any is configured."""
    sync = background_sync(partial(round_apart, settings), every_s)
    if settings.reader_url is None and settings.embeddings_url is None:
        return sync
    reading = background_sync(reading_apart, every_s)

    def both(stop: threading.Event) -> None:
        with threads_beside(reading=reading):
            sync(stop)
            stop.wait()

    return both


def _serve_by_workers(options: dict[str, Any], background: Background | None) -> None:
    config = uvicorn.Config(
        "app.server.run:worker_app", factory=True, timeout_worker_healthcheck=WORKER_TIMEOUT_S, **options
    )
    workers = Workers(config, [bind(config)])
    with (
        tempfile.TemporaryDirectory(prefix="triage-metrics-") as folder,
        threads_beside(background=background),
    ):
        share_metrics(folder)
        workers.run()
    if not workers.was_signalled:
        raise ServerError("a worker could not start; its message stands above")


def give_memory_back() -> None:
    """Make malloc return the memory of large logs to the system at once.

    glibc raises its mmap threshold each time such a block is freed; setting it once disables that
    (mallopt(3), M_MMAP_THRESHOLD). Other C libraries have no such call.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def _prepare() -> None:
    log_libraries()
    give_memory_back()
    load_pages()
    gc.freeze()  # exclude what is loaded now from garbage collection, as it stays forever
    TimedProtocol.connections_max = raise_file_limit()


def worker_app() -> FastAPI:
    """Create the application of one worker process; settings come from the environment."""
    end_with_parent()
    settings = load_settings()
    set_up_logging(settings.log_level, settings.log_format)
    _prepare()
    app = create_app(settings)
    app.add_middleware(SpreadConnections)
    return app
