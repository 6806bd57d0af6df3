"""Bodies that dribble, stop or crowd the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from app.web.middleware.body_limits import CrowdedError, LimitReceiving, ReceivingLimits, TooSlowError

POST = {"type": "http", "headers": [(b"content-length", b"9")], "client": ("192.0.2.1", 1)}


async def reads_all(_scope: Any, receive: Any, _send: Any) -> None:
    while (await receive()).get("more_body"):
        pass


async def no_send(_message: Any) -> None:
    return None


def receiving(parts: Sequence[bytes], *, pause_s: float = 0.0) -> Any:
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting[-1]["more_body"] = False

    async def receive() -> Any:
        await asyncio.sleep(pause_s)
        return waiting.pop(0)

    return receive


def ask(limit: LimitReceiving, receive: Any, scope: Any = POST) -> None:
    asyncio.run(limit(scope, receive, no_send))


def test_a_body_in_time_passes() -> None:
    ask(LimitReceiving(reads_all), receiving([b"one", b"two"]))


def test_a_body_that_stops_is_refused() -> None:
    limits = ReceivingLimits(pause_timeout_s=0.01)
    with pytest.raises(TooSlowError):
        ask(LimitReceiving(reads_all, limits), receiving([b"one", b"two"], pause_s=0.5))


def test_a_body_that_dribbles_past_its_time_is_refused() -> None:
    limits = ReceivingLimits(body_timeout_s=0.05, pause_timeout_s=1)
    with pytest.raises(TooSlowError):
        ask(LimitReceiving(reads_all, limits), receiving([b"x"] * 50, pause_s=0.01))


def test_what_all_bodies_hold_is_limited_and_freed_again() -> None:
    limit = LimitReceiving(reads_all, ReceivingLimits(held_max_bytes=10))
    with pytest.raises(CrowdedError):
        ask(limit, receiving([b"x" * 6, b"x" * 6]))
    ask(limit, receiving([b"x" * 9]))


def test_waiting_for_a_client_to_hang_up_has_no_limit() -> None:
    async def waits(_scope: Any, receive: Any, _send: Any) -> None:
        await receive()
        await receive()

    limits = ReceivingLimits(body_timeout_s=0.03, pause_timeout_s=0.03)
    hangs_up = [b"whole"]

    async def receive() -> Any:
        if hangs_up:
            return {"type": "http.request", "body": hangs_up.pop(), "more_body": False}
        await asyncio.sleep(0.1)
        return {"type": "http.disconnect"}

    asyncio.run(LimitReceiving(waits, limits)(POST, receive, no_send))


def test_a_request_without_a_body_is_not_timed() -> None:
    limits = ReceivingLimits(pause_timeout_s=0.01)
    ask(LimitReceiving(reads_all, limits), receiving([b""], pause_s=0.05), {"type": "http", "headers": []})


def test_one_client_holds_its_share_and_others_theirs() -> None:
    limit = LimitReceiving(reads_all, ReceivingLimits(held_max_bytes=30, share_bytes=10))
    with pytest.raises(CrowdedError):
        ask(limit, receiving([b"x" * 6, b"x" * 6]))

    async def both() -> None:
        first = limit(POST, receiving([b"x" * 6, b"x"], pause_s=0.05), no_send)
        other = limit({**POST, "client": ("192.0.2.2", 1)}, receiving([b"x" * 9], pause_s=0.05), no_send)
        await asyncio.gather(first, other)

    asyncio.run(both())


def test_when_all_is_full_the_oldest_body_of_who_holds_most_goes() -> None:
    async def run() -> tuple[Any, ...]:
        limit = LimitReceiving(reads_all, ReceivingLimits(held_max_bytes=20, share_bytes=16))

        def sending(client: str, *parts: bytes, pause_s: float) -> Any:
            scope = {**POST, "client": (client, 1)}
            return limit(scope, receiving(parts, pause_s=pause_s), no_send)

        return await asyncio.gather(
            sending("192.0.2.1", b"x" * 7, b"x", pause_s=0.05),
            sending("192.0.2.1", b"x" * 7, b"x", pause_s=0.06),
            sending("192.0.2.2", b"x" * 9, pause_s=0.08),
            return_exceptions=True,
        )

    oldest, newer, other = asyncio.run(run())
    assert isinstance(oldest, CrowdedError)
    assert (newer, other) == (None, None)
