"""Clients that send their headers slowly, or never take their answer, against a real server."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import pytest
import uvicorn

from app.server.connections import TimedProtocol

ANSWER_BYTES = 64 * 1024 * 1024
UNREAD_BYTES = 4 * 1024 * 1024


class ImpatientProtocol(TimedProtocol):
    headers_timeout_s = 0.4
    unread_timeout_s = 0.4
    linger_s = 0.3
    connections_max = 6
    share = 4


async def answers(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(0.8)
    body = b"x" * (ANSWER_BYTES if scope["path"] == "/big" else 2)
    if scope["path"] == "/unread":
        body *= UNREAD_BYTES // 2
    if scope["path"] == "/echo":
        body = (await receive())["body"]
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]}
    )
    await send({"type": "http.response.body", "body": body})


@contextmanager
def served() -> Iterator[int]:
    config = uvicorn.Config(
        answers,
        port=0,
        forwarded_allow_ips=["127.0.0.9"],
        http=ImpatientProtocol,
        log_level="critical",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served() as found:
        yield found


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(address, 0))


def is_cut(client: socket.socket) -> bool:
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return True


def test_headers_that_never_end_are_cut(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        began = time.monotonic()
        assert is_cut(client)
        assert time.monotonic() - began < 3


def test_a_connection_that_sends_nothing_is_cut(port: int) -> None:
    with closing(connect(port)) as client:
        assert is_cut(client)


def test_an_answer_that_takes_long_is_waited_for(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"


def test_a_second_request_on_a_connection_has_its_own_time(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        client.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert is_cut(client)


def test_an_answer_that_nobody_reads_is_dropped(port: int) -> None:
    with closing(connect(port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(1.0)
        got = 0
        try:
            while part := client.recv(1 << 20):
                got += len(part)
        except ConnectionResetError:
            pass
        assert got < ANSWER_BYTES


def test_headers_that_go_on_and_on_are_refused(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        try:
            for _ in range(200):
                client.sendall(b"X-More: " + b"x" * 4096 + b"\r\n")
                time.sleep(0.001)
        except (ConnectionResetError, BrokenPipeError):
            return
        assert client.recv(12) == b"HTTP/1.1 400"


def test_line_ends_alone_do_not_hold_a_connection(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        began = time.monotonic()
        with suppress(ConnectionResetError, BrokenPipeError):
            while time.monotonic() - began < 4:
                client.sendall(b"\r\n")
                time.sleep(0.02)
        assert time.monotonic() - began < 3


def test_two_requests_sent_at_once_are_both_answered(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(
            b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        got = b""
        while part := client.recv(65536):
            got += part
        assert got.count(b"HTTP/1.1 200") == 2


def test_a_body_arrives_whole_beside_a_wish_for_another_protocol(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nbody"
        )
        got = b""
        while part := client.recv(65536):
            got += part
        assert got.endswith(b"\r\n\r\nbody")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["two-lengths", "blank-before-colon", "not-ascii"],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(port: int, request_bytes: bytes) -> None:
    with closing(connect(port)) as client:
        client.sendall(request_bytes)
        assert client.recv(12) == b"HTTP/1.1 400"


def test_a_body_that_stops_after_its_answer_holds_nothing(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert b"\r\nconnection: close\r\n" in client.recv(65536).lower()
        client.sendall(b"x")
        began = time.monotonic()
        assert is_cut(client)
        assert time.monotonic() - began < 2


def test_who_sends_on_after_its_answer_still_gets_it(port: int) -> None:
    with closing(connect(port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n")
        time.sleep(0.1)
        client.sendall(b"x" * 900_000)
        time.sleep(0.1)
        assert client.recv(12) == b"HTTP/1.1 200"


def test_the_last_answer_that_nobody_reads_is_dropped(port: int) -> None:
    with closing(connect(port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /unread HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        time.sleep(1.2)
        got = 0
        with suppress(ConnectionResetError):
            while part := client.recv(1 << 20):
                got += len(part)
        assert got < UNREAD_BYTES


def is_open(client: socket.socket) -> bool:
    try:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return client.recv(12) == b"HTTP/1.1 200"
    except ConnectionError:
        return False


def are_open(port: int, *addresses: str) -> list[bool]:
    """Which of connections that were opened one after the other are open when all were."""
    with ExitStack() as held:
        clients: list[socket.socket | None] = []
        for address in addresses:
            try:
                clients.append(held.enter_context(closing(connect(port, address))))
            except ConnectionError:  # closed before the handshake was seen to be over
                clients.append(None)
            time.sleep(0.02)
        return [client is not None and is_open(client) for client in clients]


def test_for_a_connection_past_its_clients_share_the_clients_oldest_is_closed() -> None:
    with served() as port:
        assert are_open(port, *["127.0.0.2"] * 6, "127.0.0.1") == [False] * 2 + [True] * 5


def test_a_trusted_proxy_has_all_connections_that_there_are() -> None:
    with served() as port:
        assert are_open(port, *["127.0.0.9"] * 6) == [True] * 6


def test_for_a_connection_past_the_limit_the_oldest_of_who_holds_most_is_closed() -> None:
    with served() as port:
        found = are_open(port, "127.0.0.1", *["127.0.0.2"] * 3, *["127.0.0.3"] * 2, "127.0.0.4")
        assert found == [True, False] + [True] * 5


def test_a_body_that_does_not_come_is_no_reason_to_stay() -> None:
    with served() as port, ExitStack() as held:
        for number in range(6):
            client = held.enter_context(closing(connect(port, f"127.0.0.{number // 2 + 2}")))
            client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        time.sleep(0.1)
        assert are_open(port, "127.0.0.1") == [True]


def test_a_request_that_is_worked_on_is_no_room_for_another() -> None:
    with served() as port, ExitStack() as held:
        slow = [held.enter_context(closing(connect(port, f"127.0.0.{number + 2}"))) for number in range(6)]
        for client in slow:
            client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.1)
        assert are_open(port, "127.0.0.1") == [False]
        assert [client.recv(12) for client in slow] == [b"HTTP/1.1 200"] * 6
