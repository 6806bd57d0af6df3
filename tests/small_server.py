"""A server of two workers without the rooms behind it, for the tests of `app.server.workers`.

    python -m tests.small_server PORT [failing] [terminal] [ignoring] [hasty]

`/` answers the worker's process id, `/slow` later. Its workers cannot start (`failing`), the terminal at standard
input controls it, it ignores hang-ups, it waits no longer than a second for a worker to end. It leaves with 9 if no signal ended it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import termios
from typing import Any

from uvicorn import Config

from app.server import workers

SLOW_S = 1.0


async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The application."""
    del receive
    if scope["path"] == "/slow":
        await asyncio.sleep(SLOW_S)
    found = str(os.getpid()).encode()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", str(len(found)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": found})


async def fail(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An application that cannot start."""
    del scope, receive
    await send({"type": "lifespan.startup.failed", "message": "nothing to serve"})


def make() -> Any:
    """What a worker runs."""
    workers.end_with_parent()
    return answer


def main() -> int:
    fails = "failing" in sys.argv
    if "terminal" in sys.argv:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if "ignoring" in sys.argv:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if "hasty" in sys.argv:
        workers.END_TIMEOUT_S = 1.0
    config = Config(
        "tests.small_server:fail" if fails else "tests.small_server:make",
        factory=not fails,
        workers=2,
        log_level="critical",
        host="127.0.0.1",
        port=int(sys.argv[1]),
        lifespan="on" if fails else "off",
        timeout_graceful_shutdown=10,
    )
    server = workers.Workers(config, [workers.bind(config)])
    server.run()
    return 0 if server.was_signalled else 9


if __name__ == "__main__":
    sys.exit(main())
