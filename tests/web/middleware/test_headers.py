"""Headers are changed as an answer starts, and nothing else is."""

from __future__ import annotations

import asyncio
from typing import Any

from app.web.middleware.headers import at_start


def test_the_headers_are_changed_before_they_are_sent_and_the_body_is_left_alone() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def answer() -> None:
        sending = at_start(send, lambda headers: headers.update({"X-One": "1"}))
        await sending({"type": "http.response.start", "status": 200, "headers": [(b"x-two", b"2")]})
        await sending({"type": "http.response.body", "body": b"text", "more_body": True})
        await sending({"type": "http.response.body", "body": b""})

    asyncio.run(answer())

    assert sent == [
        {"type": "http.response.start", "status": 200, "headers": [(b"x-two", b"2"), (b"x-one", b"1")]},
        {"type": "http.response.body", "body": b"text", "more_body": True},
        {"type": "http.response.body", "body": b""},
    ]
