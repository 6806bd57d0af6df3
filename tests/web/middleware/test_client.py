"""The client is who the nearest trusted proxy says it is, and nobody else's word counts."""

from __future__ import annotations

import asyncio
from typing import Any

from app.web.middleware.client import ForwardedClient, client_of
from tests.rows import over_rows

TRUSTED = ("10.0.0.0/8", "127.0.0.1", "fd00::/8")


def scope(peer: str | None, *headers: tuple[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "scheme": "http",
        "client": (peer, 5) if peer is not None else None,
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
    }


def seen(peer: str | None, *headers: tuple[str, str], trusted: Any = TRUSTED) -> tuple[str, str]:
    found: list[tuple[str, str]] = []

    async def app(inner: Any, _receive: Any, _send: Any) -> None:
        found.append((client_of(inner), inner["scheme"]))

    asyncio.run(ForwardedClient(app, trusted)(scope(peer, *headers), None, None))  # type: ignore[arg-type]
    return found[0]


FORWARDED = "X-Forwarded-For"


@over_rows(
    ("peer", "chain", "client"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.2", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "1.1.1.1, 198.51.100.1, 10.9.9.9", "198.51.100.1"),
        ("10.0.0.2", "203.0.113.5:4711", "203.0.113.5"),
        ("10.0.0.2", "[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::/64"),
        ("10.0.0.2", "not an address", "10.0.0.2"),
        ("10.0.0.2", "198.51.100.1, unknown, 10.9.9.9", "10.0.0.2"),
        ("10.0.0.2", "10.1.1.1, 10.2.2.2", "10.1.1.1"),
        ("10.0.0.2", "", "10.0.0.2"),
        ("2001:db8:1:2::77", None, "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", None, "203.0.113.9"),
        ("fd00::1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", None, "fe80::/64"),
    ],
)
def test_the_rightmost_address_that_no_trusted_proxy_has_is_the_client(
    peer: str, chain: str | None, client: str
) -> None:
    headers = [] if chain is None else [(FORWARDED, chain)]

    assert seen(peer, *headers)[0] == client


def test_headers_that_come_in_parts_are_one_list() -> None:
    assert seen("10.0.0.2", (FORWARDED, "198.51.100.1"), (FORWARDED, "10.3.3.3"))[0] == "198.51.100.1"


def test_only_a_trusted_proxy_says_that_the_client_came_by_https() -> None:
    proto = ("X-Forwarded-Proto", "https")

    assert seen("10.0.0.2", (FORWARDED, "198.51.100.1"), proto)[1] == "https"
    assert seen("203.0.113.9", proto)[1] == "http"
    assert seen("10.0.0.2", ("X-Forwarded-Proto", "javascript"))[1] == "http"


@over_rows(
    ("peer", "headers", "trusted", "client"),
    [
        ("127.0.0.1", [], (), "127.0.0.1"),
        ("::1", [], (), "::1"),
        ("::ffff:127.0.0.1", [], (), "127.0.0.1"),
        ("", [], (), "local"),
        (None, [], (), "local"),
        ("127.0.0.1", [(FORWARDED, "127.0.0.9")], (), "127.0.0.1"),
        ("127.0.0.1", [("X-Real-IP", "::1")], (), "127.0.0.1"),
        ("127.0.0.1", [(FORWARDED, "203.0.113.9")], TRUSTED, "203.0.113.9"),
        ("127.0.0.1", [], TRUSTED, "127.0.0.1"),
    ],
)
def test_this_machine_is_a_client_as_any_other(
    peer: str | None, headers: list[tuple[str, str]], trusted: Any, client: str
) -> None:
    assert seen(peer, *headers, trusted=trusted)[0] == client
