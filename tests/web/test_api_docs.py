"""The page to try the API from: its files are ours, its policy as strict as everywhere."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient


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
