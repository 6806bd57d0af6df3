"""A server of /v1/embeddings on the loopback, whose vectors are what a function makes of the texts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Vectors = Callable[[Sequence[str]], Sequence[Sequence[float]]]


@contextmanager
def embeddings_server(vectors: Vectors, model: str = "vectors") -> Iterator[tuple[str, list[str]]]:
    """Serve until the end of the `with`: the address, and the texts it was sent so far."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"data": [{"id": model}]})

        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            sent.extend(texts)
            made = [list(map(float, vector)) for vector in vectors(texts)]
            rows = [{"index": at, "embedding": vector} for at, vector in enumerate(made)]
            self._send({"model": model, "data": rows[::-1]})

        def _send(self, answer: object) -> None:
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()
