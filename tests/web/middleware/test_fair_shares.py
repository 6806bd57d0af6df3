"""Bodies that dribble, stop or crowd the worker; and requests of one client that wait for each other only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from app.web.middleware.fair_shares import (
    WAITING_MAX,
    CrowdedError,
    LimitReceiving,
    ReceivingLimits,
    TakeTurns,
    TooSlowError,
)

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


GREEDY, OTHER = "192.0.2.1", "192.0.2.2"


def asked(client: str, path: str = "/", *headers: tuple[bytes, bytes], method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "path": path, "method": method, "headers": list(headers), "client": (client, 1)}


class Room:
    """An application that works until it may answer, and who is at work in it."""

    def __init__(self) -> None:
        self.at_work: list[str] = []
        self.may_answer = asyncio.Event()
        self.statuses: list[int] = []
        self.answered: list[str] = []
        self.turns = TakeTurns(self)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while scope["method"] == "POST" and (await receive()).get("more_body"):
            pass
        self.at_work.append(scope["client"][0])
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(scope.get("parts", 0)):
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": b""})
        self.answered.append(scope["client"][0])

    async def ask(self, scope: dict[str, Any], receive: Any = None) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.statuses.append(message["status"])
            elif not message.get("more_body"):
                await asyncio.sleep(0.01)  # the client takes its time to read

        await self.turns(scope, receive, send)


async def started(*asking: Any) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(each) for each in asking]
    await asyncio.sleep(0.02)
    return tasks


def run(asking: Callable[[Room], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asking(Room()))


def test_one_client_has_one_turn() -> None:
    async def ask(room: Room) -> None:
        tasks = await started(room.ask(asked(OTHER)), *(room.ask(asked(GREEDY)) for _ in range(5)))
        assert room.at_work == [OTHER, GREEDY]
        room.may_answer.set()
        await asyncio.gather(*tasks)
        assert len(room.at_work) == 6

    run(ask)


def test_a_read_with_a_body_waits_for_its_turn_as_well() -> None:
    async def ask(room: Room) -> None:
        tasks = await started(room.ask(asked(OTHER)))
        body = (b"content-length", b"1")
        tasks += await started(*(room.ask(asked(GREEDY, "/", body)) for _ in range(5)))
        assert room.at_work == [OTHER, GREEDY]
        room.may_answer.set()
        await asyncio.gather(*tasks)

    run(ask)


def test_who_hangs_up_while_waiting_leaves_the_turn_to_others() -> None:
    async def ask(room: Room) -> None:
        tasks = await started(*(room.ask(asked(GREEDY)) for _ in range(4)))
        tasks[-1].cancel()
        tasks[0].cancel()
        room.may_answer.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert room.statuses == [200] * 2

    run(ask)


def test_an_answer_in_many_parts_keeps_its_turn_until_the_last() -> None:
    async def ask(room: Room) -> None:
        room.may_answer.set()
        long = [room.ask(asked(GREEDY) | {"parts": 5}) for _ in range(3)]
        tasks = await started(room.ask(asked(OTHER)), *long)
        assert room.at_work == [OTHER, GREEDY]
        await asyncio.gather(*tasks)
        assert room.answered == [OTHER, GREEDY, GREEDY, GREEDY]

    run(ask)


def test_health_waits_for_no_turn() -> None:
    async def ask(room: Room) -> None:
        tasks = await started(*(room.ask(asked(GREEDY, path)) for path in ("/", "/", "/healthz")))
        assert len(room.at_work) == 2
        room.may_answer.set()
        await asyncio.gather(*tasks)

    run(ask)


def test_a_body_that_is_not_here_yet_takes_no_turn() -> None:
    async def ask(room: Room) -> None:
        arrives = asyncio.Event()

        async def dribble() -> Any:
            await arrives.wait()
            return {"type": "http.request", "body": b"x", "more_body": False}

        body = (b"content-length", b"1")
        slow = [room.ask(asked(GREEDY, "/", body, method="POST"), dribble) for _ in range(5)]
        tasks = await started(*slow, room.ask(asked(GREEDY)))
        assert room.at_work == [GREEDY]
        room.may_answer.set()
        arrives.set()
        await asyncio.gather(*tasks)
        assert len(room.at_work) == 6

    run(ask)


def test_past_the_limit_who_has_most_waiting_is_refused_and_nobody_else() -> None:
    async def ask(room: Room) -> None:
        asking = [room.ask(asked(GREEDY)) for _ in range(WAITING_MAX + 2)]
        tasks = await started(*asking, *(room.ask(asked(OTHER)) for _ in range(3)))
        assert room.statuses == [429]
        room.may_answer.set()
        await asyncio.gather(*tasks)

    run(ask)


def test_who_asks_no_more_is_forgotten() -> None:
    async def ask(room: Room) -> None:
        room.may_answer.set()
        for client in (GREEDY, OTHER):
            await room.ask(asked(client))
        assert (room.turns._turns, dict(room.turns._asking)) == ({}, {})

    run(ask)
