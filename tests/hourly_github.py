"""A GitHub on the loopback whose hour is soon used up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def hourly_github(requests: int) -> Iterator[tuple[str, list[str]]]:
    """A GitHub on the loopback that gives so many anonymous requests in its hour; and what it was asked."""
    asked: list[str] = []

    class Hourly(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            number = int(self.path.split("/issues/")[1].split("/")[0])
            row = {"number": number, "title": "t", "state": "open", "html_url": f"https://x/{number}"}
            body = json.dumps(row if self.path.endswith(f"/{number}") else []).encode()
            self.send_response(200)
            for name, value in {
                "x-ratelimit-limit": requests,
                "x-ratelimit-remaining": requests - len(asked),
                "x-ratelimit-reset": int(time.time()) + 3000,
                "content-length": len(body),
            }.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hourly)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
