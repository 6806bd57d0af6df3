"""Request logging and metrics: a log line per request, and `/metrics` for Prometheus.

A line has the method, the route's template, the status, the time, and a request id that the response carries
too, but never a URL, a query, a header or a body, which are the caller's. Everything else logged during the
request has the id as well. Counts are per process, or of all workers if `triage serve --workers` gave them a
shared folder.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import structlog
from fastapi import APIRouter, Request
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import StoreError
from app.knowledge.freshness import ReaderOverview, freshness, overview
from app.store.session import Store
from app.web.answers.problems import routes_at
from app.web.middleware.rate_limits import key_name

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_LABELS = ("route", "method", "status", "key")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

router = APIRouter()


class Metrics:
    """The metrics of one process, in their own registry.

    Args:
        shared_folder: where all workers share their counts; must be set before this module is imported.
    """

    def __init__(self, shared_folder: str | None = None) -> None:
        own = CollectorRegistry()
        self.registry = own if shared_folder is None else CollectorRegistry()
        if shared_folder is None:
            ProcessCollector(registry=self.registry)
        else:
            cast("Any", MultiProcessCollector)(self.registry, path=shared_folder)
        self.requests = Counter("triage_requests", "Requests answered", _LABELS, registry=own)
        self.seconds = Histogram(
            "triage_request_seconds",
            "Time to the first byte of the answer",
            ("route",),
            buckets=BUCKETS_S,
            registry=own,
        )
        self.in_flight = Gauge(
            "triage_requests_in_flight", "Requests being answered", registry=own, multiprocess_mode="livesum"
        )
        self.verdicts = Counter("triage_verdicts", "Diagnoses by verdict", ("verdict",), registry=own)

    def count_request(self, route: str, method: str, status: int, key: str, seconds: float) -> None:
        """Count an answered request; `key` is the name of its API key, `seconds` the time to first byte."""
        self.requests.labels(route, method if method in _METHODS else "other", str(status), key).inc()
        self.seconds.labels(route).observe(seconds)

    def count_verdict(self, verdict: str) -> None:
        """Count a diagnosis by its verdict."""
        self.verdicts.labels(verdict).inc()

    def watch(self, store: Store, repos: Sequence[str], waiting_bytes: Callable[[], int]) -> None:
        """Add gauges of the store's content and of the bytes of waiting deliveries."""
        self.registry.register(AtScrape(partial(store_gauges, store, repos, waiting_bytes)))

    def watch_reader(self, overview: Callable[[], ReaderOverview]) -> None:
        """Add gauges of the model reader's progress."""
        self.registry.register(AtScrape(partial(reader_gauges, overview)))


Gauges = Iterator[GaugeMetricFamily]


class AtScrape(Collector):
    """Gauges computed at each scrape."""

    def __init__(self, read: Callable[[], Gauges]) -> None:
        self._read = read

    def describe(self) -> Gauges:
        """Return nothing, so that registering does not read the store."""
        return iter(())

    def collect(self) -> Gauges:
        """Compute the gauges."""
        return self._read()


def store_gauges(store: Store, repos: Sequence[str], waiting_bytes: Callable[[], int]) -> Gauges:
    """Yield size and freshness of each repository, if the store is readable, and the queue of deliveries."""
    waiting = GaugeMetricFamily("triage_deliveries_waiting_bytes", "Webhook deliveries not stored yet")
    waiting.add_metric((), waiting_bytes())
    up = GaugeMetricFamily("triage_database_up", "1 if the database can be read")
    stored = GaugeMetricFamily("triage_stored", "Rows stored", labels=("repo", "kind"))
    age = GaugeMetricFamily("triage_data_age_seconds", "Since the last complete sync", labels=("repo",))
    failing = GaugeMetricFamily("triage_sync_failing", "1 if the last sync was cut short", labels=("repo",))
    try:
        for repo in repos:
            fresh = freshness(store, repo)
            seen = overview(store, repo, fresh)
            stored.add_metric((repo, "issue"), seen.issues)
            stored.add_metric((repo, "pull_request"), seen.pulls)
            if fresh.age_s is not None:
                age.add_metric((repo,), fresh.age_s)
            if fresh.last_run is not None:
                failing.add_metric((repo,), int(fresh.last_run.was_cut_short))
        up.add_metric((), 1)
    except StoreError:
        up.add_metric((), 0)
    yield from (waiting, up, stored, age, failing)


def reader_gauges(overview: Callable[[], ReaderOverview]) -> Gauges:
    """Yield the model reader's progress; nothing if the store cannot be read."""
    labels = ("repo", "outcome")
    replies = GaugeMetricFamily("triage_reader_replies", "Replies of the model reader", labels=labels)
    waiting = GaugeMetricFamily("triage_reader_waiting", "Issues it has not read", labels=("repo",))
    values = GaugeMetricFamily(
        "triage_reader_values", "Values it named: proven by a quote or dropped", labels=("repo", "fate")
    )
    tokens = GaugeMetricFamily("triage_reader_tokens_today", "Tokens used since midnight UTC")
    try:
        found = overview()
    except StoreError:
        return
    tokens.add_metric((), found.tokens_today)
    for repo, one in found.repositories.items():
        waiting.add_metric((repo,), one.waiting)
        values.add_metric((repo, "proven"), one.values_kept)
        values.add_metric((repo, "dropped"), one.values_dropped)
        for outcome, count in one.outcomes.items():
            replies.add_metric((repo, outcome), count)
    yield from (replies, waiting, values, tokens)


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    found: Metrics = request.app.state.metrics
    return Response(generate_latest(found.registry), media_type=CONTENT_TYPE_LATEST)


HEADER = "X-Request-ID"
QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/static"})
"""Routes that are polled; logged only if they fail."""
UNKNOWN_ROUTE = "unknown"
"""Label of all paths without a route, as their text is the caller's."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOG = structlog.get_logger(__name__)


class WatchRequests:
    """ASGI middleware. A request id sent by the client or a proxy is kept if it is a plain word."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app; count the request when its response starts, log it when the response is complete."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent_id = Headers(scope=scope).get(HEADER, "")
        request_id = sent_id if _ID.fullmatch(sent_id) else uuid.uuid4().hex
        began = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
                took_s = time.perf_counter() - began
                self._metrics.count_request(route_of(scope), scope["method"], status, key_name(scope), took_s)
            await send(message)

        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            self._metrics.in_flight.track_inprogress(),
        ):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                route = route_of(scope)
                if status >= 500 or status == 0 or route not in QUIET:
                    took_ms = round((time.perf_counter() - began) * 1000, 1)
                    line = {"method": scope["method"], "route": route, "status": status, "took_ms": took_ms}
                    if key := key_name(scope):
                        line["key"] = key
                    _LOG.info("request", **line)


def route_of(scope: Scope) -> str:
    """Return the route's template, such as `/issues/{number}`, or the root of a mount.

    For a request rejected before routing it is the route that would have matched.
    """
    if scope.get("root_path") == "/static":
        return "/static"
    route = scope.get("route")
    if route is None and "app" in scope:
        route = next(routes_at(scope["app"].routes, scope["path"]), None)
    return str(getattr(route, "path", UNKNOWN_ROUTE))
