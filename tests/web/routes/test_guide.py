"""The guide: every page is served, listed and linked, and its links lead somewhere."""

from __future__ import annotations

import re

from fastapi.testclient import TestClient

from app.paths import guide_dir
from app.web.routes.guide import guide_pages
from tests.rows import over_rows

NAMES = sorted(path.stem for path in guide_dir().glob("*.md"))


def test_the_contents_list_every_page() -> None:
    assert sorted(guide_pages()) == NAMES


@over_rows("name", NAMES)
def test_a_page_is_served_and_its_links_lead_somewhere(client: TestClient, name: str) -> None:
    answer = client.get("/guide" if name == "index" else f"/guide/{name}")

    assert answer.status_code == 200
    article = answer.text[answer.text.index("<article") : answer.text.index("</article>")]
    assert "<h1 id=" in article
    for target in re.findall(r'href="([^"]+)"', article):
        if target.startswith("#"):
            assert f'id="{target[1:]}"' in article
            continue
        assert target.startswith(("https://", "http://127.0.0.1", "/"))
        if target.startswith("/guide"):
            assert client.get(target.partition("#")[0]).status_code == 200


def test_the_name_of_the_file_leads_to_the_page(client: TestClient) -> None:
    answer = client.get("/guide/chatbots.md", follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (301, "/guide/chatbots")


def test_a_page_that_is_not_there_is_404(client: TestClient) -> None:
    assert client.get("/guide/../errors").status_code == 404
    assert client.get("/guide/nothing").status_code == 404


def test_what_the_server_does_not_have_is_no_link(client: TestClient) -> None:
    assert "../deploy" not in client.get("/guide/operations").text
    assert "<code>triage.service</code>" in client.get("/guide/operations").text
