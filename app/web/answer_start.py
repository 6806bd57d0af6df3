"""The moment in which an answer's headers can still be changed."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send


def at_start(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """What sends an answer as `send` does, its headers changed first."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return send_changed
