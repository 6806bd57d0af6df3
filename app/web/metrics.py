"""`/metrics`: how many requests of which route took how long, for Prometheus. No user text, no addresses."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
UNKNOWN_ROUTE = "unknown"
"""All addresses that are no route; their text is the caller's and stays out."""

router = APIRouter()


class Metrics:
    """The figures of one process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "triage_requests", "Requests answered", ("route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "triage_request_seconds", "Time to the first byte of the answer", ("route",),
            buckets=BUCKETS_S, registry=self.registry,
        )  # fmt: skip


class MeasureRequests:
    """ASGI middleware that counts each answer under its route's template."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; note its status and time as the answer starts."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
                self._metrics.requests.labels(route, str(message["status"])).inc()
                self._metrics.seconds.labels(route).observe(time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, send_and_note)


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """The figures of this process in Prometheus' text format."""
    found: Metrics = request.app.state.metrics
    return Response(generate_latest(found.registry), media_type=CONTENT_TYPE_LATEST)
