"""The regressions page and its JSON routes: reachable by version, paged, escaped, honest when empty."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.extract.facts import Evidence, Facts, Regression, Workaround
from app.store.derived.readings import Reading, save_readings
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.samples import REPO, an_issue
from tests.web.routes.test_diagnose import HOSTILE, Page

LINE = "Since 0.9.0 it fails; --moe-backend triton works."


@pytest.fixture
def stored(store: Store) -> None:
    def of(field: str, value: str) -> Evidence:
        return Evidence(
            field=field,
            value=value,
            quote=LINE,
            source="body",
            start=0,
            end=len(LINE),
            rule="t",
            confidence=1,
        )

    readings = [
        Reading(
            number,
            Facts(
                number=number,
                is_failure=True,
                failure_kind="crash",
                versions={"vllm": "0.9.0"},
                regression=Regression(last_working="0.8.5", first_failing="0.9.0"),
                workarounds=(Workaround(action="--moe-backend triton", kind="flag", outcome="works"),),
                evidence=(
                    of("versions.vllm", "0.9.0"),
                    of("regression.first_failing", "0.9.0"),
                    of("workarounds", "--moe-backend triton"),
                ),
            ),
        )
        for number in (1, 2, 3)
    ]
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, [an_issue(n, title=HOSTILE, body=LINE, comments=n) for n in (1, 2, 3)])
        save_readings(session, repo_id, readings, rules_version="t")


def numbers(answer: Any) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [item["number"] for item in answer.json()["items"]]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    "path", ["/api/v1/regressions?version=0.9.0", "/api/v1/versions/v0.9.0/known-issues?closed=true"]
)
def test_both_routes_give_the_weightiest_first_page_by_page(client: TestClient, path: str) -> None:
    first = client.get(f"{path}&limit=2")
    last = client.get(f"{path}&limit=2&cursor={first.json()['next_cursor']}")

    assert numbers(first) + numbers(last) == [3, 2, 1]
    assert (first.json()["total"], last.json()["next_cursor"]) == (3, None)
    item = first.json()["items"][0]
    assert item["regression"]["first_failing"] == "0.9.0"
    assert item["remedy"]["quote"]["text"] == LINE
    assert item["quotes"][0]["text"] == LINE
    assert item["fix"]["state"] == "not_fixed"


def test_nothing_stored_gives_empty_lists(client: TestClient) -> None:
    assert numbers(client.get("/api/v1/regressions")) == []
    assert numbers(client.get("/api/v1/versions/0.9.0/known-issues")) == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/regressions?version=%3Cb%3E",
        "/api/v1/regressions?limit=0",
        "/api/v1/regressions?cursor=x",
        "/api/v1/versions/a%20b/known-issues",
        "/api/v1/versions/0.9.0/known-issues?repo=x",
    ],
)
def test_what_is_no_version_no_page_and_no_repository_is_refused(client: TestClient, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("query", ["", "?version=0.9.0", "?version=0.9.0&closed=1", "?version=main"])
def test_the_page_is_whole_and_escapes_what_issues_say(client: TestClient, query: str) -> None:
    answer = client.get(f"/regressions{query}")
    page = Page(answer.text)

    assert answer.status_code == 200
    assert page.unbalanced == []
    assert "<script>alert" not in answer.text
    ids = page.values("id")
    assert len(ids) == len(set(ids))


@pytest.mark.usefixtures("stored")
def test_the_page_of_a_version_tells_range_remedy_fix_and_words(client: TestClient) -> None:
    text = Page(client.get("/regressions?version=0.9.0").text).text

    for found in (
        "Began in 0.9.0",
        "works in 0.8.5, fails in 0.9.0",
        "--moe-backend triton",
        "Not fixed",
        LINE,
    ):
        assert found in text


@pytest.mark.usefixtures("stored")
def test_without_a_version_one_can_be_chosen(client: TestClient) -> None:
    assert "/regressions?version=0.9.0" in Page(client.get("/regressions").text).values("href")


def test_an_unknown_build_says_that_nothing_is_stored_and_that_this_proves_nothing(
    client: TestClient,
) -> None:
    text = Page(client.get("/regressions", params={"version": "b4d1dea"}).text).text

    assert "No stored issue says that anything fails in it. That is no proof" in text


@pytest.mark.parametrize(
    "path", ["/api/v1/regressions?version=banana", "/api/v1/versions/ninety/known-issues"]
)
def test_a_version_that_cannot_be_is_refused(client: TestClient, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 422
    assert "is no version such as 0.19.0" in answer.json()["detail"]


@pytest.mark.usefixtures("stored")
def test_a_list_can_be_narrowed_to_what_affects_or_may_affect_a_stack(client: TestClient) -> None:
    every = numbers(client.get("/api/v1/issues?stack=0.9.0~H100"))
    parts = {
        name: numbers(client.get(f"/api/v1/issues?stack=0.9.0~H100&affects={name}"))
        for name in ("affects", "unsure")
    }
    page = client.get("/issues?stack=0.9.0~H100").text

    assert not set(parts["affects"]) & set(parts["unsure"])
    assert set(parts["affects"]) | set(parts["unsure"]) <= set(every)
    for name, words in (("affects", "Affects you"), ("unsure", "May affect you")):
        assert f"affects={name}" in page
        assert words in page
        narrowed = client.get(f"/issues?stack=0.9.0~H100&affects={name}").text
        assert f'<b class="num" role="status">{len(parts[name])} issue' in narrowed


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("stack", ["", "~H100"])
def test_what_affects_a_stack_needs_one_with_a_version(client: TestClient, stack: str) -> None:
    answer = client.get("/api/v1/issues", params={"affects": "affects", "stack": stack})

    assert answer.status_code == 422
    assert "needs a stack that names a release" in answer.text


@pytest.mark.usefixtures("stored")
def test_the_page_of_a_stack_says_what_may_affect_it(client: TestClient) -> None:
    page = client.get("/stack?stack=0.9.0~H100").text

    assert "No other report agrees with your stack" in page
    assert "name another GPU, model or argument, or none to compare" in page
