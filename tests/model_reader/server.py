"""A model reader's server on the loopback, for commands and processes: it counts what it is asked, and takes its time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.model_reader.replies import NOTHING

Reply = Callable[[str], Any]
"""Content of a prompt to the reply, as JSON."""


def nothing_found(_content: str) -> Any:
    return {**NOTHING, "kind": {"value": "other", "line": 1, "quote": "Bug"}}


@dataclass
class Served:
    """The server's address, and the contents it was asked about with the time of each request."""

    url: str = ""
    asked: list[tuple[float, str]] = field(default_factory=list)
    answer_s: float = 0.0

    @property
    def contents(self) -> list[str]:
        return [content for _, content in self.asked]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: Any) -> None:
        """Nothing: a client that was killed reads no answer."""


@contextmanager
def answering(model: dict[str, Any], answer: Callable[[Any], object]) -> Iterator[str]:
    """Serve one model until the end of the `with`: the address; `answer` makes the answer to a body."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"data": [model]})

        def do_POST(self) -> None:
            self._send(answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def _send(self, answer: object) -> None:
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: requests are counted."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def reader_server(reply: Reply = nothing_found, answer_s: float = 0.0) -> Iterator[Served]:
    """Serve until the end of the `with`; each reply takes `answer_s`, which may be changed meanwhile."""
    served = Served(answer_s=answer_s)

    def answer(body: Any) -> object:
        content = body["messages"][1]["content"]
        served.asked.append((time.monotonic(), content))
        time.sleep(served.answer_s)
        choice = {"message": {"content": json.dumps(reply(content))}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 2_000, "completion_tokens": 100}
        return {"model": "reader", "choices": [choice], "usage": usage}

    with answering({"id": "reader", "max_model_len": 32_768}, answer) as served.url:
        yield served
