"""Each request is counted, and has one line in the program's log, under an id that its answer carries too.

The line has the method, the route's template, the status and the time: never an address, a query, a header
or a body, which are the caller's. Whatever else is logged while the request is answered has the id as well.
"""

from __future__ import annotations

import re
import time
import uuid

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.answers.problems import routes_at
from app.web.middleware.metrics import Metrics
from app.web.middleware.rate_limits import key_name

HEADER = "X-Request-ID"
QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/static"})
"""Routes that are asked all the time; logged only where they fail."""
UNKNOWN_ROUTE = "unknown"
"""All addresses that are no route; their text is the caller's and stays out."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOG = structlog.get_logger(__name__)


class WatchRequests:
    """ASGI middleware. An id that the caller or a proxy sends is kept where it is a plain word."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on; count it as its answer starts, write the line when the answer is out."""
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
    """The template of the route that answers, such as `/issues/{number}`; of a mount its root.

    Of a request that was refused before it came to a route it is the one that would have answered.
    """
    if scope.get("root_path") == "/static":
        return "/static"
    route = scope.get("route")
    if route is None and "app" in scope:
        route = next(routes_at(scope["app"].routes, scope["path"]), None)
    return str(getattr(route, "path", UNKNOWN_ROUTE))
