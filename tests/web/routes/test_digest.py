"""The digest's pages: complete, escaped, the same each time, small; and what no week is, refused."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from fastapi.testclient import TestClient

from app.knowledge.digest.digest import make_digest
from app.knowledge.digest.tables import digest_parts
from app.knowledge.iso_week import IsoWeek
from app.paths import templates_dir
from app.store.session import Store
from app.web.views.pictures import HEIGHT, LEVELS_MAX, WIDTH, columns, levels
from tests.knowledge.made_week import GROWING, REPO, SECRET, WEEK, put_week
from tests.web.routes.test_home import checked

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
    told = client.get(f"/api/v1{PAGE}", headers={"accept": "text/markdown"})

    assert asked.text == named.text == told.text
    assert asked.headers["content-type"].startswith("text/markdown")
    assert "| New issues | 15 | 3 |" in named.text


@pytest.mark.usefixtures("stored")
def test_the_mail_shows_the_numbers_as_tables_and_needs_no_style_sheet(
    client: TestClient, store: Store
) -> None:
    mail = client.get(f"{PAGE}/email").text
    told = Tables(mail)
    parts = digest_parts(make_digest(store, REPO, IsoWeek.parse(WEEK)))

    rows = [row for part in parts for row in part.rows]
    heads = [list(part.heads) for part in parts if part.rows]
    assert [row for row in told.rows if row not in heads] == [
        [f"#{cell.number} {cell.text}" if cell.number else cell.text for cell in row] for row in rows
    ]
    assert not told.attributes & {"style", "class", "src"}
    assert not told.tags & {"script", "style", "img", "svg", "link"}
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
    assert "triage sync" in client.get(f"/api/v1{PAGE}").json()["detail"]


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


def test_columns_stand_on_the_base_and_the_last_is_marked() -> None:
    drawing = columns("Failures a week", [("W01", 10), ("W02", 0), ("W03", 20)])

    assert [bar.css for bar in drawing.bars] == ["br", "br", "hi"]
    assert [bar.height for bar in drawing.bars] == [59.0, 0, 118.0]
    assert {bar.y + bar.height for bar in drawing.bars} == {138}
    assert drawing.label == "Failures a week: W01 10, W02 0, W03 20"
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in drawing.bars)
    assert all(0 < word.y < HEIGHT for word in drawing.words)


def test_levels_sum_up_what_there_is_no_room_for() -> None:
    drawing = levels("Hardware", [(f"GPU {n}", 20 - n) for n in range(12)])

    assert len(drawing.bars) == LEVELS_MAX - 1
    assert [word.text for word in drawing.words][-2:] == ["6 others", "69"]
    assert drawing.label.endswith("GPU 11 9")
    assert levels("Hardware", [("A very long accelerator name", 1)]).words[0].text == "A very long accel…"


def test_charts_without_values_are_drawn_empty() -> None:
    assert columns("Weeks", []).label == "Weeks: none"
    assert [bar.height for bar in columns("Weeks", [("W01", 0)]).bars] == [0]
    assert levels("Kinds", []).bars == ()


def test_the_partial_is_small_and_sets_no_style() -> None:
    source = (templates_dir() / "_chart.html").read_text(encoding="utf-8")

    assert len(source.splitlines()) < 80
    assert "style=" not in source
