"""Real servers of tests: a port for one, and waiting for what it does."""

from __future__ import annotations

import time
from collections.abc import Callable
from socket import socket

LOOK_EVERY_S = 0.02


def free_port() -> int:
    """A port of the loopback that nothing listens on."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(is_so: Callable[[], object], what: str, within_s: float = 30.0) -> None:
    """Return once it is so; fail with `what` if it is not in time."""
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(LOOK_EVERY_S)
