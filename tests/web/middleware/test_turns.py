"""Requests of one client wait for each other; nobody else waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

from app.web.middleware import turns
from app.web.middleware.turns import AT_ONCE, WAITING_MAX, TakeTurns

GREEDY, OTHER = "192.0.2.1", "192.0.2.2"


def asked(client: str, path: str = "/", *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "path": path, "method": "GET", "headers": list(headers), "client": (client, 1)}


class Room:
    """An application that works until it may answer, and who is at work in it."""

    def __init__(self) -> None:
        self.at_work: list[str] = []
        self.may_answer = asyncio.Event()
        self.statuses: list[int] = []
        self.turns = TakeTurns(self)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while scope["headers"] and (await receive()).get("more_body"):
            pass
        self.at_work.append(scope["client"][0])
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.01)  # the client takes its time to read

    async def ask(self, scope: dict[str, Any], receive: Any = None) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.statuses.append(message["status"])

        await self.turns(scope, receive, send)


async def started(*asking: Any) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(each) for each in asking]
    await asyncio.sleep(0.02)
    return tasks


def test_one_client_has_a_few_turns_at_a_time_and_others_have_theirs() -> None:
    async def run() -> None:
        room = Room()
        tasks = await started(*(room.ask(asked(GREEDY)) for _ in range(5)), room.ask(asked(OTHER)))
        assert sorted(room.at_work) == [GREEDY] * AT_ONCE + [OTHER]
        room.may_answer.set()
        await asyncio.gather(*tasks)
        assert len(room.at_work) == 6

    asyncio.run(run())


def test_health_waits_for_no_turn() -> None:
    async def run() -> None:
        room = Room()
        tasks = await started(*(room.ask(asked(GREEDY, path)) for path in ("/", "/", "/", "/healthz")))
        assert len(room.at_work) == AT_ONCE + 1
        room.may_answer.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_a_body_that_is_not_here_yet_takes_no_turn() -> None:
    async def run() -> None:
        room, arrives = Room(), asyncio.Event()

        async def dribble() -> Any:
            await arrives.wait()
            return {"type": "http.request", "body": b"x", "more_body": False}

        slow = [room.ask(asked(GREEDY, "/", (b"content-length", b"1")), dribble) for _ in range(5)]
        tasks = await started(*slow, room.ask(asked(GREEDY)))
        assert room.at_work == [GREEDY]
        room.may_answer.set()
        arrives.set()
        await asyncio.gather(*tasks)
        assert len(room.at_work) == 6

    asyncio.run(run())


def test_who_asks_without_end_is_refused_and_then_forgotten() -> None:
    async def run() -> None:
        room = Room()
        tasks = await started(*(room.ask(asked(GREEDY)) for _ in range(WAITING_MAX + 1)))
        assert room.statuses == [429]
        room.may_answer.set()
        await asyncio.gather(*tasks)
        del tasks
        assert not room.turns._clients

    asyncio.run(run())


def test_there_is_a_thread_for_others() -> None:
    from app.main import THREADS

    assert turns.AT_ONCE < THREADS
