"""Several repositories behind one desk: addresses, the switch between them, and the links across."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from app.config import Settings
from app.knowledge.indexing.derive import derive_issues
from app.main import create_app
from app.store.github.issues import add_repository, save_issues
from app.store.github.releases import save_releases
from app.store.records import IssueRecord, ReleaseRecord
from app.store.session import Store
from tests.samples import EARLY, LATE, REPO, a_pull, a_release, a_traceback, an_issue, fenced

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette asks for another HTTP library
    from fastapi.testclient import TestClient

FLASH, ASCEND = "flashinfer-ai/flashinfer", "vllm-project/vllm-ascend"
CRASH = a_traceback(
    "RuntimeError: paged plan holds 48 tiles but the zebra workspace has room for 32",
    "flashinfer/zebra.py:plan",
    "flashinfer/jit/zebra_core.py:run_plan",
)
IN_VLLM = a_traceback(
    "RuntimeError: paged plan holds 48 tiles but the zebra workspace has room for 32",
    "vllm/v1/attention/backends/flashinfer.py:build",
    "flashinfer/zebra.py:plan",
    "flashinfer/jit/zebra_core.py:run_plan",
)
THEIRS = f"/r/{FLASH}/issues/70"
WEEK = "2026-W15"


def put(store: Store, repo: str, *records: IssueRecord | ReleaseRecord) -> None:
    issues = [record for record in records if isinstance(record, IssueRecord)]
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, issues)
        save_releases(session, repo_id, [record for record in records if isinstance(record, ReleaseRecord)])
        derive_issues(session, repo_id, repo, [issue.number for issue in issues])


@pytest.fixture
def base(store: Store) -> Store:
    body = fenced("Planning ends so:", CRASH)
    url = f"https://github.com/{FLASH}/issues/70"
    put(
        store,
        FLASH,
        an_issue(70, title="Zebra plan outgrows its workspace", body=body, url=url, state="closed"),
        a_pull(77, title="Size the zebra workspace", body=f"Fixes #70, fixes {REPO}#902", merged_at=EARLY),
        a_release("v0.2.5", 77, published_at=LATE),
    )
    span = "It worked in 0.9.0 and fails in 0.9.1."
    put(
        store,
        REPO,
        an_issue(900, title="[Bug]: no room for zebras", body=fenced(f"As {FLASH}#70. {span}", IN_VLLM)),
        an_issue(902, title="[Bug]: zebras stand still", body="They stand still."),
        an_issue(70, title="Ours of the same number"),
        a_release("v0.9.2", published_at=LATE),
    )
    put(store, ASCEND, an_issue(3, title="Zebras on another device", created_at=EARLY - timedelta(days=70)))
    return store


@pytest.fixture
def client(base: Store) -> Iterator[TestClient]:
    url = base.engine.url.render_as_string(hide_password=False)
    settings = Settings(database_url=url, repo=(REPO, FLASH, ASCEND), _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings, base)) as opened:
        yield opened


def page(client: TestClient, address: str, **query: str) -> str:
    answer = client.get(address, params=query)
    assert answer.status_code == 200, answer.text
    return answer.text


def switch(source: str) -> list[tuple[str, bool, str]]:
    found = re.search(r'<nav[^>]*aria-label="Repository">(.*?)</nav>', source, re.S)
    assert found
    return [
        (address, bool(on), name)
        for address, on, name in re.findall(r'<a href="([^"]+)"( aria-current="true")?>([^<]+)</a>', found[1])
    ]


@pytest.mark.parametrize(
    "path", ["/issues", "/signatures", "/regressions", "/digest/archive", f"/digest/{WEEK}"]
)
def test_lists_lead_to_each_repository_and_mark_the_shown_one(client: TestClient, path: str) -> None:
    flash = f"{path}?repo=flashinfer-ai%2Fflashinfer"
    ascend = f"{path}?repo=vllm-project%2Fvllm-ascend"

    assert switch(page(client, path)) == [(path, True, REPO), (flash, False, FLASH), (ascend, False, ASCEND)]
    assert switch(page(client, path, repo=FLASH)) == [
        (path, False, REPO),
        (flash, True, FLASH),
        (ascend, False, ASCEND),
    ]


def test_the_switch_takes_the_question_along(client: TestClient) -> None:
    source = page(client, "/issues", q="zebra", state="open", repo=FLASH)

    assert switch(source)[0][0] == "/issues?q=zebra&amp;state=open"


def test_one_repository_alone_has_no_switch(base: Store) -> None:
    url = base.engine.url.render_as_string(hide_password=False)
    settings = Settings(database_url=url, repo=(REPO,), _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings, base)) as client:
        for path in ("/issues", "/signatures", "/regressions", "/digest/archive", f"/digest/{WEEK}"):
            assert 'aria-label="Repository"' not in page(client, path)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/api/v1/issues", "number"),
        ("/api/v1/signatures", "canonical"),
        ("/api/v1/regressions", "number"),
        ("/api/v1/versions/0.9.1/known-issues", "number"),
    ],
)
def test_a_list_tells_one_repository_s_issues_only(client: TestClient, path: str, key: str) -> None:
    lists = {repo: client.get(path, params={"repo": repo}).json()["items"] for repo in (REPO, FLASH, ASCEND)}

    assert lists[REPO] == client.get(path).json()["items"]
    assert all(item["repo"] == repo for repo, items in lists.items() for item in items)
    assert {item[key] for item in lists[REPO]} <= {70, 900, 902}
    assert {item[key] for item in lists[FLASH]} <= {70}
    if "issues" in path and "known" not in path:
        assert [item[key] for item in lists[FLASH]] == [70]


@pytest.mark.parametrize("form", ["", ".md"])
def test_a_digest_is_of_the_repository_that_is_asked_for(client: TestClient, form: str) -> None:
    ours, theirs = page(client, f"/digest/{WEEK}{form}"), page(client, f"/digest/{WEEK}{form}", repo=FLASH)

    assert "no room for zebras" in ours
    assert "no room for zebras" not in theirs
    assert "Zebra plan outgrows its workspace" in theirs
    if not form:
        assert f'href="{THEIRS}"' in theirs
        assert f'href="/digest/{WEEK}.md?repo=flashinfer-ai%2Fflashinfer"' in theirs
    assert client.get(f"/api/v1/digest/{WEEK}", params={"repo": FLASH}).json()["repo"] == FLASH


def test_the_newest_digest_of_another_repository_keeps_its_name(client: TestClient) -> None:
    answer = client.get("/digest", params={"repo": ASCEND}, follow_redirects=False)

    assert answer.headers["location"].endswith("?repo=vllm-project%2Fvllm-ascend")


@pytest.mark.parametrize("path", ["/issues", "/regressions", f"/digest/{WEEK}"])
def test_a_name_that_is_no_repository_is_refused(client: TestClient, path: str) -> None:
    assert client.get(path, params={"repo": "no repository"}).status_code == 422


def test_either_end_of_a_mention_shows_the_other_on_its_page(client: TestClient) -> None:
    ours, theirs = page(client, "/issues/900"), page(client, THEIRS)

    assert f'href="{THEIRS}"' in ours
    assert "Zebra plan outgrows its workspace" in ours
    assert 'href="/issues/900"' in theirs
    assert f"{REPO}#900" in theirs
    assert "mentions this" in theirs


def test_an_issue_s_page_leads_to_its_own_repository_s_cluster(client: TestClient, base: Store) -> None:
    put(
        base,
        FLASH,
        an_issue(
            71, title="Zebra plan outgrows its workspace again", body=fenced("Planning ends so:", CRASH)
        ),
    )
    links = re.findall(r'href="(/signatures/s1-[^"]+)"', page(client, THEIRS))

    assert links
    assert all(link.endswith("?repo=flashinfer-ai%2Fflashinfer") for link in links)
    assert client.get(links[0]).status_code == 200


def test_related_issues_of_other_repositories_are_listed_with_their_names(client: TestClient) -> None:
    ours = client.get("/api/v1/issues/900/related").json()["items"]
    theirs = client.get(f"/api/v1/repos/{FLASH}/issues/70/related").json()["items"]

    assert (FLASH, 70) in {(item["repo"], item["number"]) for item in ours}
    assert {(item["repo"], item["number"], item["kind"]) for item in theirs} >= {
        (REPO, 900, "mentions"),
        (FLASH, 77, "fixed_by"),
    }
    assert (REPO, 70) not in {(item["repo"], item["number"]) for item in (*ours, *theirs)}


def test_the_report_shows_the_other_repository_and_leads_there(client: TestClient) -> None:
    source = page(client, "/report", url=f"{FLASH}#70")
    found = client.get(f"/api/v1/repos/{FLASH}/issues/70/report").json()

    assert 'href="/issues/900"' in source
    assert f"https://github.com/{REPO}/issues/900" in source
    assert {node["key"] for node in found["graph"]["nodes"]} >= {f"{FLASH}#70", f"{REPO}#900", f"{FLASH}#77"}


def test_a_fix_of_another_repository_is_shown_with_its_name(client: TestClient) -> None:
    fix = client.get("/api/v1/issues/902", params={"vllm_version": "0.9.1"}).json()["fix"]
    source = page(client, "/issues/902", vllm_version="0.9.1")

    assert (fix["state"], fix["released_in"], fix["for_you"]) == ("merged_unreleased", None, "unknown")
    assert fix["elsewhere"] == {
        "repo": FLASH,
        "pr": 77,
        "pull_request": f"{FLASH}#77",
        "state": "merged",
        "released_in": "0.2.5",
    }
    assert f"Merged in {FLASH}#77, in {FLASH} 0.2.5" in source
    assert "Upgrade to" not in source


@pytest.mark.parametrize(
    "path", [f"/api/v1/repos/{FLASH}/issues/70", f"/api/v1/repos/{FLASH}/issues/70/report"]
)
def test_a_vllm_version_is_not_compared_with_another_repository_s_releases(
    client: TestClient, path: str
) -> None:
    fix = client.get(path, params={"vllm_version": "0.9.1"}).json()["fix"]

    assert (fix["state"], fix["released_in"], fix["for_you"]) == ("fixed", "0.2.5", "unknown")


def test_the_diagnosis_of_a_vllm_crash_leads_to_the_flashinfer_issue(client: TestClient) -> None:
    log = CRASH + "\n"
    found: dict[str, Any] = client.post("/api/v1/diagnose", json={"log": log, "vllm_version": "0.9.1"}).json()
    theirs = next(match for match in found["matches"] if match["repo"] == FLASH)
    source = client.post("/diagnose", data={"log": log}).text
    markdown = client.post("/api/v1/diagnose", json={"log": log}, headers={"accept": "text/markdown"}).text

    assert (theirs["number"], theirs["fix"]["for_you"]) == (70, "unknown")
    assert f'href="{THEIRS}"' in source
    assert f"{FLASH}#70 Zebra plan outgrows its workspace" in source
    assert f'href="/issues/70">{FLASH}' not in source
    assert f"[{FLASH}#70](https://github.com/{FLASH}/issues/70)" in markdown


def test_a_vote_counts_for_the_issue_of_its_own_repository(client: TestClient) -> None:
    sent = {"signal": "works", "value": 1}
    assert client.post(f"/api/v1/repos/{FLASH}/issues/70/votes", json=sent).status_code == 200

    assert client.get(f"/api/v1/repos/{FLASH}/issues/70").json()["votes"]["works"]["up"] == 1
    assert client.get("/api/v1/issues/70").json()["votes"]["works"]["up"] == 0


def test_readiness_tells_of_every_repository(client: TestClient) -> None:
    found = client.get("/readyz").json()["repositories"]

    assert [one["repo"] for one in found] == [REPO, FLASH, ASCEND]


def test_a_day_of_the_week_is_what_these_tests_take_it_for() -> None:
    assert EARLY.strftime("%G-W%V") == WEEK
