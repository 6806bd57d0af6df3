"""The page to try the API from: its files are ours, its policy as strict as everywhere.

Those who watch the service can tell alive from ready.

Crawlers and models find what they look for.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
import time_machine
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.config import Settings
from app.extract.facts import Facts
from app.main import create_app
from app.paths import guide_dir
from app.store.engine.sync_lock import sync_lock
from app.store.github.issues import add_repository
from app.store.github.sync_state import begin_run, end_run, save_cursor
from app.store.schema import migrate
from app.store.session import Store
from app.web.routes.service import guide_pages
from tests.rows import over_rows
from tests.web.conftest import ISSUE, REPO, Room


def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline(client: TestClient) -> None:
    answer = client.get("/docs")

    assert answer.status_code == 200
    sources = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert all(source.startswith("/") for source in sources)
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", answer.text)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy


def test_its_files_are_there(client: TestClient) -> None:
    page = client.get("/docs").text
    for source in re.findall(r'(?:src|href)="(/(?:docs|static)/[^"]+)"', page):
        assert client.get(source).status_code == 200, source
    assert client.get("/docs/swagger-ui-bundle.js").headers["content-type"].startswith("text/javascript")
    assert 'PACKAGE_VERSION:"5' in client.get("/docs/swagger-ui-bundle.js").text


@pytest.mark.parametrize("name", ["redoc.standalone.js", "..%2fcore.py", "x", "favicon.png"])
def test_no_other_file_of_the_package_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/docs/{name}").status_code == 404


def test_no_validator_is_asked(client: TestClient) -> None:
    assert "validatorUrl: null" in client.get("/static/docs.js").text


def test_alive_needs_no_database(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/empty.db", _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings)) as client:
        assert client.get("/healthz").json()["status"] == "alive"
        answer = client.get("/readyz")

    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert "triage migrate" in answer.json()["detail"]


def test_ready_with_the_current_schema_tells_the_freshness(client: TestClient, store: Store) -> None:
    empty = client.get("/readyz").json()
    assert (empty["status"], empty["as_of"], empty["age_s"], empty["is_syncing"]) == (
        "ready",
        None,
        None,
        False,
    )

    ended = datetime(2026, 6, 3, 6, tzinfo=UTC)
    with store.unit_of_work() as session, time_machine.travel(ended, tick=False):
        repo_id = add_repository(session, REPO)
        save_cursor(session, repo_id, "issues", {"since": "2026-06-03T05:59:00Z"})
        end_run(session, begin_run(session, repo_id), outcome="complete")
    with store.unit_of_work() as session, time_machine.travel(ended + timedelta(hours=1), tick=False):
        end_run(session, begin_run(session, repo_id), outcome="failed", fault="GitHub could not be reached")
    with sync_lock(store.engine), time_machine.travel(ended + timedelta(hours=2), tick=False):
        answer = client.get("/readyz").json()

    assert (answer["as_of"], answer["age_s"], answer["is_stale"]) == ("2026-06-03T06:00:00Z", 7200, False)
    assert answer["is_syncing"] is True
    (found,) = answer["repositories"]
    assert (found["repo"], found["last_run"]["outcome"]) == (REPO, "failed")
    assert found["cursors"]["issues"]["position"] == {"since": "2026-06-03T05:59:00Z"}
    assert "could not be reached" not in json.dumps(answer)


def test_not_ready_with_a_schema_of_a_newer_program(client: TestClient, store: Store) -> None:
    migrate(store)
    with store.unit_of_work() as session:
        session.connection().execute(text("UPDATE alembic_version SET version_num = 'ffff00000000'"))

    assert client.get("/readyz").status_code == 503


def test_the_background_runs_beside_the_server_and_is_told_to_stop(settings: Settings, store: Store) -> None:
    began, ended = Event(), Event()

    def background(stop: Event) -> None:
        began.set()
        stop.wait(30)
        ended.set()

    with TestClient(create_app(settings, store, background=background)):
        assert began.wait(5)
        assert not ended.is_set()

    assert ended.is_set()


def test_robots_keep_off_answers_and_filters(client: TestClient) -> None:
    answer = client.get("/robots.txt")

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith("User-agent: *\nDisallow: /api/\n")
    assert "Disallow: /d/\n" in answer.text


def test_llms_txt_has_a_title_a_summary_and_links_that_lead_somewhere(client: TestClient) -> None:
    text = client.get("/llms.txt").text

    assert text.startswith("# vLLM Triage\n\n> ")
    assert "never instructions" in text
    assert "http://testserver/mcp" in text
    assert len(text) < 3000
    for link in set(re.findall(r"\(http://testserver(/(?:docs|openapi)[^)#]*)", text)):
        assert client.get(link).status_code == 200, link


def test_llms_txt_repeats_no_odd_host(client: TestClient) -> None:
    text = client.get("/llms.txt", headers={"host": 'evil"><script>'}).text

    assert "evil" not in text


def test_a_page_that_names_no_icon_still_has_one(client: TestClient) -> None:
    answer = client.get("/favicon.ico")

    assert answer.status_code == 301
    assert client.get(answer.headers["location"]).headers["content-type"].startswith("image/svg")


@pytest.mark.parametrize("path", ["/", "/issues/39288", "/regressions", "/report"])
def test_pages_describe_themselves(client: TestClient, path: str) -> None:
    text = client.get(path).text
    title = re.search(r'<meta property="og:title" content="([^"]+)">', text)
    about = re.search(r'<meta property="og:description" content="([^"]+)">', text)

    assert title
    assert f"<title>{title[1]} · vLLM Triage</title>" in text
    assert about
    assert f'<meta name="description" content="{about[1]}">' in text


def test_the_description_of_a_hostile_issue_stays_inside_its_attribute(
    client: TestClient, room: Room
) -> None:
    hostile = '"><script>alert(1)</script>'
    room.issue = ISSUE.model_copy(
        update={"title": hostile, "facts": Facts(number=1, is_failure=True, summary=hostile)}
    )

    text = client.get("/issues/39288").text

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_answers_to_logs_are_not_indexed(client: TestClient) -> None:
    assert '<meta name="robots" content="noindex">' in client.post("/diagnose", data={"log": "x"}).text


def test_the_index_names_every_route(client: TestClient) -> None:
    routes = set(client.get("/api/v1").json()["routes"].values())
    described = client.get("/openapi.json").json()["paths"]
    listed = {
        f"{m.upper()} {path}"
        for path, found in described.items()
        for m in found
        if path.startswith("/api/v1/")
    }

    assert routes == listed


NAMES = sorted(["changelog", *(path.stem for path in guide_dir().glob("*.md"))])


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
