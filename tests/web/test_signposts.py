"""Crawlers and models find what they look for."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from app.extract.facts import Facts
from tests.web.conftest import ISSUE, Room


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


def test_the_description_of_a_hostile_issue_stays_inside_its_attribute(client: TestClient, room: Room) -> None:
    hostile = '"><script>alert(1)</script>'
    room.issue = ISSUE.model_copy(
        update={"title": hostile, "facts": Facts(number=1, is_failure=True, summary=hostile)}
    )

    text = client.get("/issues/39288").text

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_answers_to_logs_are_not_indexed(client: TestClient) -> None:
    assert '<meta name="robots" content="noindex">' in client.post("/diagnose", data={"log": "x"}).text
