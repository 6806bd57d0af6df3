"""`/metrics` for Prometheus: requests, verdicts, what waits, what is stored. No user text, no addresses.

Counts of one process, or of all workers where `triage serve --workers` gave them a folder to share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

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
from starlette.responses import Response

from app.errors import StoreError
from app.knowledge.freshness import freshness, overview
from app.knowledge.operations.reader_overview import ReaderOverview
from app.store.session import Store

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_LABELS = ("route", "method", "status", "key")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

router = APIRouter()


class Metrics:
    """The figures of one process, in a registry of its own.

    Args:
        shared_folder: where all workers of this server count together, set before this module was loaded.
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
        """One more request was answered; `key` is the name of its API key, `seconds` to its first byte."""
        self.requests.labels(route, method if method in _METHODS else "other", str(status), key).inc()
        self.seconds.labels(route).observe(seconds)

    def count_verdict(self, verdict: str) -> None:
        """One more diagnosis ended so."""
        self.verdicts.labels(verdict).inc()

    def watch(self, store: Store, repos: Sequence[str], waiting_bytes: Callable[[], int]) -> None:
        """From now on count also what the store holds and how many bytes of deliveries wait."""
        self.registry.register(StoreFigures(store, repos, waiting_bytes))

    def watch_reader(self, overview: Callable[[], ReaderOverview]) -> None:
        """From now on count also how far the model reader is."""
        self.registry.register(ReaderFigures(overview))


class StoreFigures(Collector):
    """What is read at each scrape: size and freshness of each repository, and the queue of deliveries."""

    def __init__(self, store: Store, repos: Sequence[str], waiting_bytes: Callable[[], int]) -> None:
        self._store = store
        self._repos = tuple(repos)
        self._waiting_bytes = waiting_bytes

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing beforehand: the registry must not read the store to register."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges; without those of the store while it cannot be read."""
        waiting = GaugeMetricFamily("triage_deliveries_waiting_bytes", "Webhook deliveries not stored yet")
        waiting.add_metric((), self._waiting_bytes())
        up = GaugeMetricFamily("triage_database_up", "1 if the database can be read")
        stored = GaugeMetricFamily("triage_stored", "Rows stored", labels=("repo", "kind"))
        age = GaugeMetricFamily("triage_data_age_seconds", "Since the last complete sync", labels=("repo",))
        failing = GaugeMetricFamily(
            "triage_sync_failing", "1 if the last sync was cut short", labels=("repo",)
        )
        try:
            for repo in self._repos:
                fresh = freshness(self._store, repo)
                seen = overview(self._store, repo, fresh)
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


class ReaderFigures(Collector):
    """What is read at each scrape of the reading by a language model.

    Args:
        overview: how far it is now.
    """

    def __init__(self, overview: Callable[[], ReaderOverview]) -> None:
        self._overview = overview

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing beforehand: the registry must not read the store to register."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges; none while the store cannot be read."""
        labels = ("repo", "outcome")
        replies = GaugeMetricFamily("triage_reader_replies", "Replies of the model reader", labels=labels)
        waiting = GaugeMetricFamily("triage_reader_waiting", "Issues it has not read", labels=("repo",))
        values = GaugeMetricFamily(
            "triage_reader_values", "Values it named: proven by a quote or dropped", labels=("repo", "fate")
        )
        tokens = GaugeMetricFamily("triage_reader_tokens_today", "Tokens used since midnight UTC")
        try:
            found = self._overview()
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
    """The figures in Prometheus' text format."""
    found: Metrics = request.app.state.metrics
    return Response(generate_latest(found.registry), media_type=CONTENT_TYPE_LATEST)
