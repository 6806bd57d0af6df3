"""The digest's pages: complete, escaped, the same each time, small; and what no week is, refused.

The feed: an Atom document by RFC 4287, with stable ids, times of the data, and words that are no markup.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlsplit
from xml.etree import ElementTree

import feedparser
import pytest
from fastapi.testclient import TestClient

from app.config import Settings
from app.knowledge.digest.digest import ValueCount, WeekCount, make_digest
from app.knowledge.digest.feed import FeedEntry
from app.knowledge.iso_week import IsoWeek
from app.knowledge.labels import heading, plural
from app.main import create_app
from app.paths import templates_dir
from app.render import make_environment
from app.store.session import Store
from app.web.routes.digest import atom, tag
from tests.knowledge.made_week import GROWING, REPO, SECRET, WEEK, put_week
from tests.web.routes.test_diagnose import Page, checked

PAGE = f"/digest/{WEEK}"


@pytest.fixture
def stored(store: Store) -> int:
    return put_week(store)


class Tables(HTMLParser):
    """The cells of a page's tables, row by row, and all its attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.attributes: set[str] = set()
        self.tags: set[str] = set()
        self.inside = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


@pytest.mark.usefixtures("stored")
def test_the_page_tells_the_week(client: TestClient) -> None:
    page = checked(client.get(PAGE).text)

    assert f"Digest {WEEK}" in page.text
    assert "14 new failures among 15 new issues" in page.text
    assert "upgrade to 0.9.1: #400 is in it." in page.text
    assert {"/digest/2026-W14", "/digest/2026-W16", f"{PAGE}.md", f"{PAGE}/email"} <= set(page.values("href"))
    assert f"/signatures/{GROWING}" in page.values("href")
    assert SECRET not in page.text
    assert "alert(1)" in page.text  # told as words: `checked` finds no script of it


@pytest.mark.usefixtures("stored")
def test_charts_say_all_their_values(client: TestClient) -> None:
    labels = checked(client.get(PAGE).text).values("aria-label")

    assert any(
        label.startswith("Failures a week: W03 0, ") and label.endswith("W14 2, W15 14") for label in labels
    )
    assert "Failures by kind: crash 11, hang 1, out of memory 1, slowdown 1" in labels
    assert "Hardware named: H100 6" in labels


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    "path", [PAGE, f"{PAGE}.md", f"{PAGE}/email", f"/api/v1{PAGE}", "/digest/archive", "/feed.atom"]
)
def test_the_same_data_gives_the_same_bytes(client: TestClient, path: str) -> None:
    one, other = client.get(path), client.get(path)

    assert one.status_code == 200, one.text
    assert one.content == other.content
    assert len(one.content) < 100_000


@pytest.mark.usefixtures("stored")
def test_the_page_is_markdown_for_who_asks_for_it(client: TestClient) -> None:
    asked = client.get(PAGE, headers={"accept": "text/markdown"})
    named = client.get(f"{PAGE}.md")
    found = client.get(f"/api/v1{PAGE}", headers={"accept": "text/markdown"})

    assert asked.text == named.text == found.text
    assert asked.headers["content-type"].startswith("text/markdown")
    assert "| New issues | 15 | 3 |" in named.text


@pytest.mark.usefixtures("stored")
def test_the_mail_fits_a_phone_shows_numbers_as_tables_and_needs_no_style_sheet(
    client: TestClient, store: Store
) -> None:
    mail = client.get(f"{PAGE}/email").text
    found = Tables(mail)
    digest = make_digest(store, REPO, IsoWeek.parse(WEEK))

    def numbers(all_: tuple[int, ...]) -> str:
        return ", ".join(f"#{number}" for number in all_)

    for row in (
        ["New issues", "15", "3"],
        *([one.week, str(one.failures), str(one.issues)] for one in digest.weeks),
        *([one.value, str(one.reports)] for one in digest.hardware),
        *([one.text, one.alive.reason, numbers(one.numbers)] for one in digest.alive),
        *(
            [
                f"#{one.number} {heading(one.title)}",
                f"Fixed by {one.fix.pr}, in {one.fix.released_in}",
                one.how,
            ]
            for one in digest.fixed[:1]
        ),
    ):
        assert row in found.rows, row
    words = unescape(re.sub(r"<[^>]*>", "", mail))
    for item in digest.clusters:
        assert f"{item.text}: {item.reports} new of {item.size} in all, {numbers(item.numbers)};" in words
    for one in digest.unremedied:
        counted = ", ".join(
            (plural(one.hits, "hit"), plural(one.comments, "comment"), plural(one.reactions, "reaction"))
        )
        assert f"#{one.number} {heading(one.title)}: {counted}" in words
    assert max(map(len, re.findall(r"[^\s<>&;]+", re.sub(r"<(?!wbr)[^>]*>", " ", mail)))) < 20
    (grown,) = digest.growing
    assert [
        grown.text,
        "5",
        "0.125",
        numbers(grown.numbers),
    ] in found.rows
    assert "three times the weekly mean of the 8 weeks before" in mail
    assert not found.attributes & {"style", "class", "src"}
    assert not found.tags & {"script", "style", "img", "svg", "link"}
    assert SECRET not in mail


@pytest.mark.usefixtures("stored")
def test_json_fits_a_budget_and_keeps_what_to_do(client: TestClient) -> None:
    whole = client.get(f"/api/v1{PAGE}").json()
    short = client.get(f"/api/v1{PAGE}?max_chars=1500")

    assert len(short.content) <= 1500
    assert short.json()["advice"] == whole["advice"][: len(short.json()["advice"])]
    assert len(short.json()["advice"]) >= 1
    assert short.json()["week"] == WEEK
    assert short.json()["truncated"]


@pytest.mark.usefixtures("stored")
def test_the_way_to_the_newest_week_goes_to_the_last_whole_one(client: TestClient) -> None:
    answer = client.get("/digest")

    assert (answer.status_code, answer.headers["location"]) == (302, f"/digest/{WEEK}")


def test_without_data_there_is_an_archive_that_says_what_to_do(client: TestClient) -> None:
    assert client.get("/digest").headers["location"] == "/digest/archive"
    assert "triage import" in checked(client.get("/digest/archive").text).text
    assert client.get(PAGE).status_code == 404
    assert "is stored yet" in client.get(f"/api/v1{PAGE}").json()["detail"]


@pytest.mark.usefixtures("stored")
def test_the_archive_leads_to_every_week(client: TestClient) -> None:
    page = checked(client.get("/digest/archive").text)

    assert [one for one in page.values("href") if one.startswith("/digest/2")] == [
        f"/digest/2026-W{n:02}" for n in range(16, 4, -1)
    ]
    assert "1 stored issue without a date is in no week." in page.text
    assert "Newest release known" in page.text


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("week", "words"),
    [("2026-W54", "no week 54"), ("2026", "2026-W46"), ("%3Cb%3E", "2026-W46"), ("2026-W00", "no week 0")],
)
def test_what_is_no_week_is_refused_in_words(client: TestClient, week: str, words: str) -> None:
    for path in (f"/digest/{week}", f"/digest/{week}.md", f"/digest/{week}/email"):
        answer = client.get(path)
        assert answer.status_code == 422
        assert words in answer.text
        assert "<b>" not in answer.text.replace("<b>2", "")
    assert client.get(f"/api/v1/digest/{week}").status_code == 422


@pytest.mark.usefixtures("stored")
def test_a_week_without_issues_has_a_page_too(client: TestClient) -> None:
    page = checked(client.get("/digest/2026-W40").text)

    assert "No issue was opened this week." in page.text
    assert "Failures by kind: none" in page.values("aria-label")


def drawn(macro: str, *values: object) -> Page:
    """A chart of `_chart.html`."""
    charts = make_environment({}).get_template("_chart.html").module
    return Page(str(getattr(charts, macro)(*values)))


def test_columns_stand_on_the_base_and_the_last_is_marked() -> None:
    weeks = [
        WeekCount(week=f"2026-W0{n}", issues=99, failures=count) for n, count in enumerate((10, 0, 20), 1)
    ]
    page = drawn("columns", "Failures a week", weeks)

    assert [name for name in page.values("class") if name in {"br", "hi"}] == ["br", "br", "hi"]
    assert page.values("height") == ["59.0", "0.0", "118.0"]
    assert [float(y) for y in page.values("y")[::2]][:2] == [79.0, 138.0]
    assert page.values("aria-label") == ["Failures a week: W01 10, W02 0, W03 20"]
    assert all(0 <= float(x) <= 360 for x in page.values("x"))


def test_levels_sum_up_what_there_is_no_room_for() -> None:
    page = drawn("levels", "Hardware", [ValueCount(value=f"GPU {n}", reports=20 - n) for n in range(12)])
    (label,) = page.values("aria-label")

    assert len(page.values("height")) == 6
    assert "6 others" in page.text
    assert "69" in page.text
    assert label.endswith("GPU 11 9")
    assert (
        "A very long accel…"
        in drawn("levels", "", [ValueCount(value="A very long accelerator name", reports=1)]).text
    )


def test_charts_without_values_are_drawn_empty() -> None:
    assert drawn("columns", "Weeks", []).values("aria-label") == ["Weeks: none"]
    empty = [WeekCount(week="2026-W01", issues=0, failures=0)]
    assert drawn("columns", "Weeks", empty).values("height") == ["0"]
    assert drawn("levels", "Kinds", []).values("height") == []


def test_the_partial_is_small_and_sets_no_style() -> None:
    source = (templates_dir() / "_chart.html").read_text(encoding="utf-8")

    assert len(source.splitlines()) < 80
    assert "style=" not in source


# ---- the feed

ATOM = "http://www.w3.org/2005/Atom"
MOMENT = datetime(2026, 4, 13, tzinfo=UTC)
BASE = "https://triage.example.org/"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")
TAG = re.compile(r"tag:[a-z0-9.-]+,\d{4}(?:-\d\d(?:-\d\d)?)?:[A-Za-z0-9._~/%-]+")
HOSTILE = "<script>alert('x')</script> ]]> &amp; &#x0; \x00\x08\x1b[31m \ud800 \ufffe \U0001f525"


def an_entry(key: str = "digest/2026-W15", **more: object) -> FeedEntry:
    found = {
        "title": "Week",
        "summary": "Words.",
        "path": f"/{key}",
        "updated": MOMENT,
        **more,
    }
    return FeedEntry(key=key, **found)  # type: ignore[arg-type]


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
    found = [(named(entry, "id")[0].text, named(entry, "updated")[0].text) for entry in entries]
    assert len(found) == len(set(found))
    assert len({key for key, _ in found}) == len(found)
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


def test_the_newest_digest_needs_no_week(client: TestClient) -> None:
    answers = [client.get(f"/api/v1/digest{tail}") for tail in ("", "/latest")]

    assert [answer.status_code for answer in answers] in ([200, 200], [404, 404])
    assert answers[0].text == answers[1].text
