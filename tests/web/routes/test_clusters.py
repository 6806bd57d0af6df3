"""The pages and JSON routes of clusters: found by any id, paged, escaped, honest when empty."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.extract.facts import Regression
from app.knowledge.cluster.timeline import Timeline, timeline
from app.render import make_environment
from app.store.session import Store
from tests.knowledge.made_clusters import BODY, OLD, ONE, SOLE, TWO, facts_of, group, link, put, report
from tests.rows import over_rows
from tests.samples import EARLY, REPO
from tests.web.routes.test_diagnose import HOSTILE, Page

JSON, PAGE = "/api/v1/signatures", "/signatures"
HELD, UNKNOWN = "s1-dddddddddddd", "s1-ffffffffffff"
OTHER = "other/project"


@pytest.fixture
def stored(store: Store) -> None:
    span = Regression(last_working="0.8.5", first_failing="0.9.0")
    repo_id = put(
        store,
        (
            report(1, title=HOSTILE, state="closed", closed_at=EARLY),
            facts_of(1, gpu="H100", version="0.9.0", remedy="--enforce-eager", span=span),
        ),
        *(
            (
                report(n, created_at=EARLY.replace(month=4 + n % 3, day=20)),
                facts_of(n, gpu="H200", signature=HELD),
            )
            for n in range(2, 30)
        ),
        (report(40, title=HOSTILE), facts_of(40)),
        (report(41), facts_of(41, remedy="--swap-space 4", outcome="fails")),
    )
    group(
        store,
        repo_id,
        ONE,
        *range(1, 30),
        text=HOSTILE,
        old=OLD,
        signatures=dict.fromkeys(range(2, 30), HELD),
    )
    group(store, repo_id, TWO, 40, text=HOSTILE)
    group(store, repo_id, SOLE, 41)
    link(store, repo_id, 2, 40, "similar", score=0.71, reason=HOSTILE)
    link(store, repo_id, 29, 28, "duplicate")
    elsewhere = put(store, (report(1, title="Elsewhere"), facts_of(1)), repo=OTHER)
    group(store, elsewhere, UNKNOWN, 1)


def items(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("sort", ["size", "recent", "growing"])
def test_the_list_is_given_page_by_page(client: TestClient, sort: str) -> None:
    whole = items(client.get(JSON, params={"sort": sort}))
    first = client.get(JSON, params={"sort": sort, "limit": 2})
    last = client.get(JSON, params={"sort": sort, "limit": 2, "cursor": first.json()["next_cursor"]})

    assert sorted(whole) == sorted([ONE, TWO, SOLE])
    assert items(first) + items(last) == whole
    assert (first.json()["total"], last.json()["next_cursor"]) == (3, None)


@pytest.mark.usefixtures("stored")
@over_rows(
    ("query", "found"),
    [
        ({"alive": "true"}, [ONE]),
        ({"min_size": 2}, [ONE]),
        ({"q": "cache"}, [SOLE]),
        ({"repo": OTHER}, [UNKNOWN]),
        ({"q": OLD}, [ONE]),
        ({"q": "nowhere"}, []),
    ],
)
def test_the_list_is_narrowed(client: TestClient, query: dict[str, Any], found: list[str]) -> None:
    assert items(client.get(JSON, params=query)) == found


@pytest.mark.usefixtures("stored")
def test_a_cluster_is_told_whole(client: TestClient) -> None:
    found = client.get(f"{JSON}/{ONE}").json()

    assert (found["id"], found["repo"], found["size"], found["canonical"]) == (ONE, REPO, 29, 1)
    assert found["members"][0] | {"role": "canonical", "number": 1} == found["members"][0]
    assert found["workarounds"][0]["quote"]["text"] == BODY
    assert found["regression"]["first_failing"] == "0.9.0"
    assert found["gpus"][0]["architecture"] == "Hopper"
    assert found["not_merged"][0]["id"] == TWO
    assert found["closed_but_alive"]["reports_since"] == 28
    assert {"first_seen", "last_seen", "versions", "fix", "text", "timeline"} <= found.keys()


@pytest.mark.usefixtures("stored")
def test_a_long_answer_is_cut_to_its_budget(client: TestClient) -> None:
    answer = client.get(f"{JSON}/{ONE}", params={"max_chars": 4000})

    assert len(answer.text) <= 4000
    assert answer.json()["truncated"]["members"] > 0
    assert answer.json()["text"]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("path", [JSON, PAGE])
@pytest.mark.parametrize("asked", [OLD, HELD])
def test_an_id_of_another_time_or_of_a_report_leads_to_the_cluster(
    client: TestClient, path: str, asked: str
) -> None:
    moved = client.get(f"{path}/{asked}")

    assert moved.status_code == 301
    assert moved.headers["location"] == f"{path}/{ONE}?via={asked}"
    assert client.get(moved.headers["location"]).status_code == 200


@pytest.mark.usefixtures("stored")
def test_the_repository_is_kept_on_the_way(client: TestClient, store: Store) -> None:
    repo_id = put(store, (report(2), facts_of(2)), repo=OTHER)
    group(store, repo_id, HELD, 2, old=OLD)

    moved = client.get(f"{PAGE}/{OLD}", params={"repo": OTHER})

    assert moved.headers["location"] == f"{PAGE}/{HELD}?via={OLD}&repo=other%2Fproject"
    assert client.get(moved.headers["location"]).status_code == 200


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("asked", [UNKNOWN, "nothing", "%3Cb%3E", "s1-" + "0" * 90])
def test_an_unknown_id_is_not_found(client: TestClient, asked: str) -> None:
    answer = client.get(f"{JSON}/{asked}")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get(f"{PAGE}/{asked}").status_code == 404


@over_rows(
    "query",
    [
        "limit=0",
        "limit=101",
        "sort=age",
        "cursor=x",
        "min_size=0",
        "alive=perhaps",
        "repo=x",
        "q=" + "a" * 201,
    ],
)
def test_what_the_list_does_not_know_is_refused(client: TestClient, query: str) -> None:
    answer = client.get(f"{JSON}?{query}")

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.usefixtures("stored")
@over_rows(
    "path",
    [
        PAGE,
        f"{PAGE}?q=cache",
        f"{PAGE}?q=nowhere",
        f"{PAGE}?repo={OTHER}",
        f"{PAGE}/{ONE}",
        f"{PAGE}/{ONE}?via={HELD}",
        f"{PAGE}/{TWO}",
        f"{PAGE}/{SOLE}",
        f"{PAGE}/{UNKNOWN}?repo={OTHER}",
    ],
)
def test_the_pages_are_whole_and_escape_what_issues_say(client: TestClient, path: str) -> None:
    answer = client.get(path)
    page = Page(answer.text)
    found = page.values("id")

    assert answer.status_code == 200
    assert page.unbalanced == []
    assert len(found) == len(set(found))
    assert "<script>alert" not in answer.text
    assert " style=" not in answer.text
    assert len(answer.content) < 100_000


@pytest.mark.usefixtures("stored")
def test_the_page_tells_what_helps_the_fix_the_range_and_what_stands_apart(client: TestClient) -> None:
    page = Page(client.get(f"{PAGE}/{ONE}").text)

    for words in (
        "29",
        "--enforce-eager",
        BODY,
        "Closed but alive:",
        "last working 0.8.5",
        "Hopper",
        "canonical",
        "20 of 29",
        "It is reported as a duplicate of #28",
    ):
        assert words in page.text
    assert f"{PAGE}/{TWO}" in page.values("href")
    assert f"{JSON}/{ONE}" in page.values("href")


@pytest.mark.usefixtures("stored")
def test_what_did_not_help_has_no_copy_button(client: TestClient) -> None:
    answer = client.get(f"{PAGE}/{SOLE}").text

    assert "Did not help:" in Page(answer).text
    assert "data-copy" not in answer


def test_nothing_stored_says_what_to_do(client: TestClient) -> None:
    text = Page(client.get(PAGE).text).text

    assert "No failure has two reports yet." in text
    assert "Families" in text
    assert items(client.get(JSON)) == []


@pytest.mark.usefixtures("stored")
def test_a_head_request_is_answered(client: TestClient) -> None:
    assert client.head(f"{PAGE}/{ONE}").status_code == 200
    assert client.head(PAGE).status_code == 200


def drawn(found: Timeline | None) -> str:
    """The bars of `_chart.html`."""
    charts = make_environment({}).get_template("_chart.html").module
    return str(charts.timeline(found.buckets, f"Reports a {found.unit}")) if found else ""


def test_the_bars_stand_inside_the_picture_and_one_is_marked() -> None:
    page = Page(drawn(timeline([EARLY.replace(month=month) for month in (1, 4, 4, 9)])))
    (width,) = page.values("width")[:1]

    assert page.values("class").count("hi") == 1
    assert [float(value) for value in page.values("height")[1:]] == [37.0, 74.0, 37.0]
    assert all(0 <= float(x) <= float(width) <= 640 for x in page.values("x"))
    assert "Reports a month: 2026-01 1, 2026-04 2, 2026-09 1." in page.values("aria-label")
