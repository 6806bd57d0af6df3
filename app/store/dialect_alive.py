"""Whether a connection to PostgreSQL that lay idle still lives, mostly known without asking.

A server that ends, or is ended, closes its connections, and that arrives: something can be read from one
that should be silent. So only a connection on which something came, or which lay idle for so long that
something between here and there may have forgotten it, is asked before it is used. That saves a round trip at
each unit of work.
"""

from __future__ import annotations

import select
import time
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import InvalidatePoolError

ASKED_AFTER_S = 30.0

_LAID_DOWN = "laid_down"


def check_when_taken(engine: Engine) -> None:
    """Let each connection of a PostgreSQL engine be checked when it is taken from the pool.

    A dead one is replaced, and so are all that lay there before.
    """

    @event.listens_for(engine, "checkin")
    def _laid_down(_connection: Any, record: Any) -> None:
        record.info[_LAID_DOWN] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _taken(connection: Any, record: Any, _fairy: Any) -> None:
        idle_s = time.monotonic() - record.info.get(_LAID_DOWN, time.monotonic())
        if idle_s < ASKED_AFTER_S and not connection.closed and _is_silent(connection.fileno()):
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError(str(error)) from error


def _is_silent(descriptor: int) -> bool:
    """Whether nothing can be read from a connection, not even its end."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)
