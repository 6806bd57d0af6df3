"""The feed: an Atom document by RFC 4287, with stable ids, times of the data, and words that are no markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from xml.etree import ElementTree

import feedparser
from fastapi.testclient import TestClient

from app.config import Settings
from app.knowledge.digest.feed import FeedEntry
from app.main import create_app
from app.store.session import Store
from app.web.routes.feed import ATOM, atom, tag
from tests.knowledge.made_week import SECRET, put_week

MOMENT = datetime(2026, 4, 13, tzinfo=UTC)
BASE = "https://triage.example.org/"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")
TAG = re.compile(r"tag:[a-z0-9.-]+,\d{4}(?:-\d\d(?:-\d\d)?)?:[A-Za-z0-9._~/%-]+")
HOSTILE = "<script>alert('x')</script> ]]> &amp; &#x0; \x00\x08\x1b[31m \ud800 \ufffe \U0001f525"


def an_entry(key: str = "digest/2026-W15", **more: object) -> FeedEntry:
    told = {
        "kind": "digest",
        "title": "Week",
        "summary": "Words.",
        "path": f"/{key}",
        "updated": MOMENT,
        **more,
    }
    return FeedEntry(key=key, **told)  # type: ignore[arg-type]


def named(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return element.findall(f"{{{ATOM}}}{name}")


def check_atom(document: bytes) -> ElementTree.Element:
    """What RFC 4287 asks of a feed and its entries: sections 4.1.1, 4.1.2, 4.2.6, 4.2.7, 3.1.1 and 3.3."""
    root = ElementTree.fromstring(document)  # noqa: S314 - our own output
    assert root.tag == f"{{{ATOM}}}feed"
    entries = named(root, "entry")
    for element in (root, *entries):
        for name in ("id", "title", "updated"):
            assert len(named(element, name)) == 1, name
        assert TIME.fullmatch(named(element, "updated")[0].text or "")
        assert TAG.fullmatch(named(element, "id")[0].text or "")
        assert named(element, "title")[0].get("type") == "text"
        assert list(named(element, "title")[0]) == []
        links = [(link.get("rel"), link.get("type")) for link in named(element, "link")]
        assert len(links) == len(set(links))
        assert all(
            urlsplit(link.get("href") or "").scheme in {"http", "https"} for link in named(element, "link")
        )
    assert named(root, "author")[0].find(f"{{{ATOM}}}name") is not None
    assert [link.get("rel") for link in named(root, "link")].count("self") == 1
    for entry in entries:
        assert "alternate" in [link.get("rel") for link in named(entry, "link")]
        assert len(named(entry, "summary")) == 1
        assert list(named(entry, "summary")[0]) == []
    told = [(named(entry, "id")[0].text, named(entry, "updated")[0].text) for entry in entries]
    assert len(told) == len(set(told))
    assert len({key for key, _ in told}) == len(told)
    return root


def test_an_empty_feed_is_a_feed() -> None:
    root = check_atom(atom((), "a/b", BASE))

    assert named(root, "updated")[0].text == "1970-01-01T00:00:00Z"
    assert feedparser.parse(atom((), "a/b", BASE)).bozo == 0


def test_hostile_words_stay_words() -> None:
    document = atom([an_entry(title=HOSTILE, summary=HOSTILE)], "a/b", BASE)
    root = check_atom(document)

    (entry,) = named(root, "entry")
    assert named(entry, "title")[0].text == "<script>alert('x')</script> ]]> &amp; &#x0; [31m   \U0001f525"
    assert b"<script" not in document
    found = feedparser.parse(document)
    assert found.bozo == 0
    assert found.entries[0].summary_detail.type == "text/plain"


def test_ids_do_not_change_with_the_host() -> None:
    one, other = atom([an_entry()], "a/b", BASE), atom([an_entry()], "a/b", "http://localhost:8000/")

    assert one.replace(BASE.encode(), b"") == other.replace(b"http://localhost:8000/", b"")
    assert tag("a/b", "fixed/7/#12 é") == "tag:vllm-triage,2026:a/b/fixed/7/%2312%20%C3%A9"


def test_the_feed_is_as_new_as_its_newest_entry() -> None:
    late = MOMENT + timedelta(days=1)
    root = check_atom(atom([an_entry("a", updated=late), an_entry("b")], "a/b", BASE))

    assert named(root, "updated")[0].text == "2026-04-14T00:00:00Z"


def test_the_stored_week_makes_a_valid_feed(client: TestClient, store: Store) -> None:
    put_week(store)
    answer = client.get("/feed.atom")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/atom+xml")
    root = check_atom(answer.content)
    found = feedparser.parse(answer.content)
    assert (found.bozo, found.version) == (0, "atom10")
    assert len(found.entries) == len(named(root, "entry")) > 10
    assert SECRET not in answer.text
    assert "Week 2026-W15: 14 new failures among 15 new issues" in [entry.title for entry in found.entries]
    assert all(entry.link.startswith("http://testserver/") for entry in found.entries)
    assert found.feed.updated == found.entries[0].updated


def test_a_base_without_data_has_an_empty_feed(client: TestClient) -> None:
    root = check_atom(client.get("/feed.atom").content)

    assert named(root, "entry") == []


def test_a_host_name_that_is_none_is_not_repeated(settings: Settings, store: Store) -> None:
    with TestClient(create_app(settings, store)) as client:
        answer = client.get("/feed.atom", headers={"host": 'x"><script>'})

    assert b"script" not in answer.content
