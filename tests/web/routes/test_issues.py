"""Issues by filters: the page whose every state is an address, and the JSON list."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from fastapi.testclient import TestClient

from app.config import Settings
from app.knowledge.indexing.batches import derive_stale
from app.knowledge.indexing.derive import derive_issues
from app.main import create_app
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.github.presence import mark_gone
from app.store.records import IssueRecord
from app.store.session import Store, open_store
from app.web.routes.issues import PAGE_ISSUES
from tests.rows import over_rows
from tests.samples import EARLY, an_issue, fenced, marlin_log, rope_log
from tests.served import starter_settings
from tests.web.conftest import REPO
from tests.web.routes.test_diagnose import HOSTILE, Page, assert_harmless, checked

LIST = "/api/v1/issues"


def keep(store: Store, *issues: IssueRecord, repo: str = REPO) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, issues)
        derive_issues(session, repo_id, repo, [issue.number for issue in issues])


@pytest.fixture
def client(settings: Settings, store: Store) -> Iterator[TestClient]:
    """The front desk with the real room behind it."""
    with TestClient(
        create_app(settings, store), raise_server_exceptions=False, follow_redirects=False
    ) as opened:
        yield opened


@pytest.fixture
def three(store: Store) -> None:
    keep(
        store,
        an_issue(
            1,
            title="[Bug]: marlin refuses the weight",
            labels=("bug",),
            body=fenced("GPU: NVIDIA H100 80GB HBM3", "`--quantization awq` works for me.", marlin_log()),
        ),
        an_issue(
            2,
            title="[Bug]: rope",
            state="closed",
            raw={"x_dates_estimated": True},
            body=fenced("GPU: NVIDIA A100-SXM4-80GB", rope_log()),
        ),
        an_issue(3, title="[Feature]: a zebra", body="Please."),
    )


def listed(client: TestClient, **query: Any) -> list[int]:
    answer = client.get(LIST, params=query)
    assert answer.status_code == 200, answer.text
    return [item["number"] for item in answer.json()["items"]]


def shown(client: TestClient, **query: Any) -> tuple[str, Page]:
    answer = client.get("/issues", params=query)
    assert answer.status_code == 200, answer.text
    return answer.text, checked(answer.text)


def numbers_in(source: str) -> list[int]:
    return [int(number) for number in re.findall(r'<span class="n">#(\d+)</span>', source)]


@pytest.mark.usefixtures("three")
def test_the_list_has_the_shape_of_all_lists(client: TestClient) -> None:
    answer = client.get(LIST, params={"gpu": "h100"}).json()
    item = answer["items"][0]

    assert (answer["total"], answer["next_cursor"], answer["facets"]) == (1, None, None)
    assert (item["repo"], item["number"], item["state"], item["error_type"]) == (
        REPO,
        1,
        "open",
        "ValueError",
    )
    assert item["remedy"] == {
        "action": "--quantization awq",
        "command": "--quantization awq",
        "outcome": "works",
        "without": False,
    }
    assert [one["action"] for one in item["workarounds"]] == ["--quantization awq"]
    assert item["error"]["type"] == item["error_type"]
    assert item["versions"]["vllm"] == item["vllm_version"]
    assert item["created_at"] == "2026-04-08T09:00:00Z"


@pytest.mark.usefixtures("three")
@over_rows(
    ("query", "numbers"),
    [
        ({}, [3, 2, 1]),
        ({"state": "open"}, [3, 1]),
        ({"has_workaround": "true"}, [1]),
        ({"has_workaround": "false"}, [3, 2]),
        ({"label": "bug"}, [1]),
        ({"error_type": "KeyError"}, [2]),
        ({"q": "zebra"}, [3]),
        ({"since": "2026-04-09"}, []),
        ({"since": "2026-04-08T09:00:00Z"}, [3, 2, 1]),
        ({"kind": "none"}, [3]),
        ({"updated_since": "2026-04-09"}, []),
        ({"sort": "comments"}, [3, 2, 1]),
        ({"gpu": "", "state": "", "since": "", "has_regression": "", "cursor": ""}, [3, 2, 1]),
    ],
)
def test_filters(client: TestClient, query: dict[str, str], numbers: list[int]) -> None:
    assert listed(client, **query) == numbers
    assert numbers_in(shown(client, **query)[0]) == numbers


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("modle=x", "modle: is no parameter of this route; the nearest is model."),
        ("repo=vllm-project/vlm", "repo: is not known here; the nearest is vllm-project/vllm."),
        ("versions.vllm=0.1", "versions.vllm: is no parameter of this route; the nearest is vllm_version."),
        ("repo=foo/bar", "repo: is not known here; there are vllm-project/vllm."),
        ("vllm_version=banana", "vllm_version: is no version such as 0.19.0, and no commit."),
        ("gpu=H1000", "gpu: H1000 is no known GPU; the nearest is H100."),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_the_nearest(client: TestClient, query: str, said: str) -> None:
    answer = client.get(f"{LIST}?{query}")

    assert answer.status_code == 422
    assert said in answer.json()["detail"]


def test_a_name_like_none_is_refused_with_all_there_are(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"][LIST]["get"]["parameters"]
    names = sorted(item["name"] for item in described if item["in"] == "query")
    answer = client.get(f"{LIST}?zzzzzzz=1")

    assert f"there are {', '.join(names)}." in answer.json()["detail"]


@pytest.mark.usefixtures("three")
def test_a_number_opens_its_issue_or_offers_to_fetch_it(client: TestClient) -> None:
    assert listed(client, q="#2") == [2]
    assert client.get("/issues?q=%232", follow_redirects=False).headers["location"] == "/issues/2"

    missing = client.get("/issues?q=%23777777", follow_redirects=True)
    assert missing.status_code == 404
    assert '<form action="/report" method="post"' in missing.text
    assert "/report" in client.get("/api/v1/issues/777777").json()["detail"]


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("words", ["xyzzyqq", "99.9", "? !"])
def test_what_is_not_searched_by_finds_nothing(client: TestClient, words: str) -> None:
    answer = client.get(LIST, params={"q": words}).json()

    assert (answer["total"], answer["ignored_words"]) == (0, words.split())


@pytest.mark.usefixtures("three")
def test_a_cursor_is_refused_with_other_filters(client: TestClient) -> None:
    cursor = client.get(LIST, params={"limit": 2}).json()["next_cursor"]

    assert client.get(LIST, params={"limit": 1, "state": "", "cursor": cursor}).status_code == 200
    refused = client.get(LIST, params={"limit": 2, "state": "open", "cursor": cursor})
    assert (refused.status_code, "with these filters" in refused.json()["detail"]) == (422, True)


@pytest.mark.usefixtures("three")
def test_a_list_links_to_its_next_part(client: TestClient) -> None:
    first = client.get(LIST, params={"limit": 2, "sort": "updated"})
    following = re.fullmatch(r'<(.+)>; rel="next"', first.headers["link"])

    assert following
    assert [item["number"] for item in client.get(following[1]).json()["items"]] == [1]
    assert "link" not in client.get(following[1]).headers


@pytest.mark.usefixtures("three")
def test_facets_are_counted_on_request(client: TestClient) -> None:
    facets = client.get(LIST, params={"facets": "true", "limit": 1}).json()["facets"]

    assert facets["gpu"] == [{"value": "A100", "count": 1}, {"value": "H100", "count": 1}]
    assert facets["arch"] == [{"value": "Ampere", "count": 1}, {"value": "Hopper", "count": 1}]
    assert facets["state"] == [{"value": "open", "count": 2}, {"value": "closed", "count": 1}]


@over_rows(
    ("query", "field"),
    [
        ({"state": "ajar"}, "state"),
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"since": "yesterday"}, "since"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since"),
        ({"has_workaround": "perhaps"}, "has_workaround"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": "anVkZ2VtZW50czoz"}, "cursor"),
        ({"repo": "no slash"}, "repo"),
        ({"kind": "boom"}, "kind"),
        ({"sort": "best"}, "sort"),
        ({"gpu": "x" * 201}, "gpu"),
        ({"q": "x" * 501}, "q"),
        ({"max_chars": "1"}, "max_chars"),
    ],
)
def test_values_of_a_wrong_type_are_refused_by_name(
    client: TestClient, query: dict[str, str], field: str
) -> None:
    answer = client.get(LIST, params=query)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in answer.json()["detail"]


def test_a_page_of_a_wrong_type_says_so(client: TestClient) -> None:
    answer = client.get("/issues", params={"state": "ajar"})

    assert answer.status_code == 422
    assert "state" in checked(answer.text).text


def test_the_cursor_leads_through_the_whole_list(client: TestClient, store: Store) -> None:
    keep(store, *(an_issue(n) for n in range(1, 8)))
    seen: list[int] = []
    query: dict[str, Any] = {"limit": 3}
    while True:
        answer = client.get(LIST, params=query).json()
        seen += [item["number"] for item in answer["items"]]
        if answer["next_cursor"] is None:
            break
        keep(store, an_issue(100 + len(seen)))
        query["cursor"] = answer["next_cursor"]

    assert seen == [7, 6, 5, 4, 3, 2, 1]


def test_a_budget_leaves_out_whole_issues_and_says_where_to_go_on(client: TestClient, store: Store) -> None:
    keep(store, *(an_issue(n) for n in range(1, 8)))
    cut = client.get(LIST, params={"max_chars": 2500, "facets": "true"}).json()
    rest = listed(client, cursor=cut["next_cursor"])

    assert cut["facets"] is None
    assert cut["truncated"]["items"] == len(rest) > 0
    assert [item["number"] for item in cut["items"]] + rest == [7, 6, 5, 4, 3, 2, 1]


@pytest.mark.usefixtures("three")
def test_every_state_of_the_page_is_an_address(client: TestClient) -> None:
    _, page = shown(client, q="marlin", gpu="H100")
    links = page.values("href")

    assert "/issues?gpu=H100" in links
    assert "/issues?q=marlin" in links
    assert "/issues?q=marlin&gpu=H100&sort=newest" in links
    assert "/issues?q=marlin&gpu=H100&state=open" in links
    assert "/api/v1/issues?q=marlin&gpu=H100" in links


@pytest.mark.usefixtures("three")
def test_every_link_of_a_facet_shows_as_many_issues_as_it_says(client: TestClient) -> None:
    source, _ = shown(client, state="open")
    links = re.findall(
        r'<li><a href="([^"]+)"(?: aria-current="true")?>.*?</a> <span class="num mute">([\d,]+)</span></li>',
        source,
    )

    assert len(links) > 5
    for address, count in links:
        if "state=open" in address:  # the one in force leads back to all
            found = client.get(html.unescape(address)).text
            assert f'role="status">{count} issue' in found, address


@pytest.mark.usefixtures("three")
def test_a_filter_in_force_is_named_and_can_be_taken_off(client: TestClient) -> None:
    source, page = shown(client, has_workaround="true", state="open", since="2026-04-01")

    assert 'aria-current="true">open' in source
    assert "has a remedy" in page.text
    assert "since 2026-04-01" in page.text
    assert '<a class="small" href="/issues">Clear all</a>' in source


@pytest.mark.usefixtures("three")
def test_the_form_for_words_keeps_the_filters_and_needs_no_script(client: TestClient) -> None:
    source, page = shown(client, q="rope", state="closed")
    form = next(part for part in source.split("<form")[1:] if 'data-live="found"' in part)

    assert 'action="/issues" method="get"' in form
    assert '<input type="hidden" name="state" value="closed">' in form
    assert 'value="rope"' in form
    assert "autofocus" not in source
    assert [attrs.get("id") for tag, attrs in page.tags if tag == "dialog"] == ["keys"]


@pytest.mark.usefixtures("three")
def test_what_matches_nothing_says_what_to_remove(client: TestClient) -> None:
    source, page = shown(client, q="zebra", gpu="H100")

    assert "No issue matches. Remove: “zebra”, H100." in " ".join(page.text.split())
    assert 'href="/issues?q=zebra"' in source


@pytest.mark.usefixtures("three")
def test_words_left_out_are_said(client: TestClient) -> None:
    assert "Not searched by: qqqqq." in shown(client, q="zebra qqqqq")[1].text


def test_an_empty_base_says_what_to_do(client: TestClient) -> None:
    assert "triage sync" in shown(client)[1].text


def test_pages_lead_forward_and_back(client: TestClient, store: Store) -> None:
    keep(store, *(an_issue(n) for n in range(1, 2 * PAGE_ISSUES + 2)))
    first = client.get("/issues").text
    second = client.get(_link(first, "next")).text
    third = client.get(_link(second, "next")).text

    assert 'rel="prev"' not in first
    assert 'rel="next"' not in third
    assert "61 – 61 of 61" in third
    assert numbers_in(client.get(_link(third, "prev")).text) == numbers_in(second)
    assert _link(second, "prev") == "/issues"


def _link(source: str, rel: str) -> str:
    found = re.search(rf'<a href="([^"]+)" rel="{rel}"', source)
    assert found
    return html.unescape(found[1])


@pytest.mark.usefixtures("three")
def test_estimated_dates_are_said(client: TestClient) -> None:
    _, page = shown(client, q="rope")

    assert re.search(r"about \d+ \w+ ago", page.text)
    assert "says that its dates are estimates" in page.text
    assert "estimates" not in shown(client, q="zebra")[1].text


def test_another_repository_s_issues_have_long_addresses(client: TestClient, store: Store) -> None:
    keep(store, an_issue(9), repo="other/thing")
    source, page = shown(client, repo="other/thing", state="open")

    assert numbers_in(source) == [9]
    assert "/r/other/thing/issues/9" in page.values("href")
    assert '<input type="hidden" name="repo" value="other/thing">' in source


def test_foreign_text_is_escaped_everywhere(client: TestClient, store: Store) -> None:
    keep(store, an_issue(1, title=HOSTILE, labels=(HOSTILE,), created_at=EARLY + timedelta(days=1)))

    assert_harmless(shown(client)[0], at_least=1)
    assert_harmless(shown(client, q=HOSTILE, model=HOSTILE, label=HOSTILE)[0], at_least=5)
    refused = client.get("/issues", params={"gpu": HOSTILE})
    assert refused.status_code == 422
    assert "<script>alert" not in refused.text


def test_a_list_within_bounds_is_small(client: TestClient, store: Store) -> None:
    keep(store, *(an_issue(n, title="w" * 250, body=fenced(marlin_log())) for n in range(1, PAGE_ISSUES + 2)))

    assert len(client.get("/issues").content) < 100_000


LATER = datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(starter_settings(tmp_path))) as opened:
        yield opened


def follow(starter: TestClient, since: str | None, limit: int) -> tuple[list[dict[str, object]], str]:
    items: list[dict[str, object]] = []
    while True:
        query = {"limit": limit} | ({"since": since} if since else {})
        answer = starter.get("/api/v1/changes", params=query).json()
        items += answer["items"]
        since = answer["next_cursor"]
        if not answer["has_more"]:
            return items, since


def test_pages_hold_everything_once_and_the_cursor_goes_on(starter: TestClient, tmp_path: Path) -> None:
    with time_machine.travel(LATER, tick=False):
        whole, end = follow(starter, None, 500)
        parts, same_end = follow(starter, None, 7)
        nothing, still = follow(starter, end, 7)

    assert parts == whole
    assert len({item["number"] for item in whole}) == len(whole) > 50
    assert (nothing, end) == ([], same_end) == ([], still)

    store = open_store(f"sqlite:///{tmp_path}/triage.db")
    with store.unit_of_work() as session:
        repo_id = find_repository(session, "vllm-project/vllm")
        assert repo_id
        assert mark_gone(session, "issue", repo_id, int(str(whole[0]["number"])))
    derive_stale(store, "vllm-project/vllm")
    store.close()
    with time_machine.travel(LATER, tick=False):
        news, _ = follow(starter, end, 7)

    assert [(item["number"], item["is_gone"]) for item in news] == [(whole[0]["number"], True)]


def test_what_is_not_settled_is_told_later(starter: TestClient) -> None:
    with time_machine.travel(datetime.now(UTC) - timedelta(days=1), tick=False):
        assert starter.get("/api/v1/changes").json()["items"] == []


def test_a_foreign_cursor_is_refused(starter: TestClient) -> None:
    assert starter.get("/api/v1/changes", params={"since": "yesterday"}).status_code == 422
