"""The report page and its routes: clear words for every address, a button for what is not stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from app.config import Settings
from app.errors import GitHubError
from app.knowledge.indexing.derive import derive_issues
from app.main import create_app
from app.store.github.issues import add_repository, save_issues
from app.store.github.presence import mark_gone
from app.store.records import IssueRecord
from app.store.session import Store
from app.web.middleware.rate_limits import Rate
from app.web.routes.report import EDGES_LISTED, Fetcher, RateLimitError
from tests.samples import a_pull, an_issue, fenced, rope_log
from tests.web.conftest import REPO, TestClient
from tests.web.routes.test_diagnose import checked

BODY = "Introduced by #850. See #860 and acme/engine#4.\n\nIt works with `--moe-backend triton`.\n" + fenced(
    rope_log()
)
MARKDOWN = {"accept": "text/markdown"}


def put(store: Store, *records: IssueRecord) -> int:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(session, repo_id, records)
        derive_issues(session, repo_id, REPO, [record.number for record in records])
    return repo_id


@dataclass
class GitHub:
    """Stands for GitHub: has issue 77, or fails."""

    asked: list[tuple[str, int]] = field(default_factory=list)
    failure: Exception | None = None

    def __call__(self, _settings: Settings, store: Store, repo: str, number: int, /) -> bool:
        self.asked.append((repo, number))
        if self.failure:
            raise self.failure
        if number == 77:
            put(store, an_issue(77, title="Fetched <now>"))
        return number == 77


@pytest.fixture
def github() -> GitHub:
    return GitHub()


@pytest.fixture
def desk(settings: Settings, store: Store, github: GitHub) -> Iterator[TestClient]:
    put(store, an_issue(900, title="[Bug]: rope <b>", body=BODY), a_pull(850, title="Rework"), an_issue(860))
    app = create_app(settings, store, fetch=github)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as opened:
        yield opened


def test_without_an_address_there_is_a_field_for_one(desk: TestClient) -> None:
    page = checked(desk.get("/report").text)

    assert page.values("name")[-1] == "url"
    assert "Report on one issue" in page.text


@pytest.mark.parametrize("address", ["900", "#900", f"https://github.com/{REPO}/issues/900", f"{REPO}#900"])
def test_an_address_gives_the_report(desk: TestClient, address: str) -> None:
    answer = desk.get("/report", params={"url": address})
    page = checked(answer.text)

    assert answer.status_code == 200
    assert "--moe-backend triton" in page.text
    assert "introduced by" in page.text
    assert "Not known" in page.text
    assert "<b>" not in answer.text.split("<h1", 1)[1].split("</h1>")[0]


def test_what_belongs_to_it_is_told_as_a_list(desk: TestClient) -> None:
    page = checked(desk.get("/report?url=900").text)

    assert "introduced by #850" in " ".join(page.text.split())
    assert "acme/engine#4" in page.text


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("seven", 422, "not the address of a GitHub issue"),
        (f"https://github.com/{REPO}/pull/850", 422, "pull request"),
        ("850", 422, "pull request"),
        ("https://github.com/acme/engine/issues/4", 422, "Only issues of"),
        ("901", 404, "#901 is not stored"),
    ],
)
def test_an_address_without_a_report_says_why(desk: TestClient, address: str, status: int, said: str) -> None:
    answer = desk.get("/report", params={"url": address})

    assert answer.status_code == status
    assert said in checked(answer.text).text


def test_what_is_not_stored_is_fetched_by_a_button(desk: TestClient, github: GitHub) -> None:
    before = checked(desk.get("/report?url=77").text)
    fetched = desk.post("/report", data={"url": f"{REPO}#77"})

    assert ("post", "/report") in [(a.get("method"), a.get("action")) for t, a in before.tags if t == "form"]
    assert (fetched.status_code, fetched.headers["location"]) == (303, "/report?url=77")
    assert "Fetched <now>" in checked(desk.get("/report?url=77").text).text
    assert github.asked == [(REPO, 77)]


def test_another_repository_is_never_asked_for(desk: TestClient, github: GitHub) -> None:
    answer = desk.post("/report", data={"url": "https://github.com/acme/engine/issues/4"})

    assert answer.status_code == 422
    assert github.asked == []


def test_what_github_does_not_have_is_gone(desk: TestClient) -> None:
    answer = desk.post("/report", data={"url": "78"})

    assert answer.status_code == 410
    assert "GitHub has no #78" in checked(answer.text).text


def test_a_stored_issue_that_is_gone_keeps_its_report(desk: TestClient, store: Store) -> None:
    with store.unit_of_work() as session:
        mark_gone(session, "issue", add_repository(session, REPO), 900, "deleted")
    answer = desk.post("/report", data={"url": "900"})

    assert answer.status_code == 303
    assert "No longer on GitHub (deleted)" in checked(desk.get("/report?url=900").text).text


def test_github_out_of_reach_is_said_and_can_be_tried_again(desk: TestClient, github: GitHub) -> None:
    github.failure = GitHubError("GitHub could not be reached")
    answer = desk.post("/report", data={"url": "77"})
    page = checked(answer.text)

    assert answer.status_code == 502
    assert "GitHub could not be reached" in page.text
    assert "Fetch vllm-project/vllm#77" in page.text


def test_a_server_fetches_only_so_often(desk: TestClient, github: GitHub) -> None:
    answers = [desk.post("/report", data={"url": "77"}) for _ in range(8)]

    assert answers[-1].status_code == 429
    assert answers[-1].headers["retry-after"] == "60"
    assert "at most 6 issues in 60 seconds" in checked(answers[-1].text).text
    assert len(github.asked) == 6


def test_a_form_that_is_no_address_is_refused(desk: TestClient) -> None:
    assert desk.post("/report", content=b"url=" + b"9" * 9000).status_code == 413
    assert desk.post("/report", content=b"\xff\x00&&==").status_code == 422


def test_one_issue_is_fetched_at_a_time(store: Store) -> None:
    inside, leave = threading.Event(), threading.Event()

    def slow(_store: Store, _repo: str, _number: int) -> bool:
        inside.set()
        return leave.wait(10)

    fetcher = Fetcher(slow)
    first = threading.Thread(target=fetcher.fetch, args=(store, REPO, 1))
    first.start()
    assert inside.wait(10)
    with pytest.raises(RateLimitError, match="just now"):
        fetcher.fetch(store, REPO, 2)
    leave.set()
    first.join(10)
    assert fetcher.fetch(store, REPO, 2)


def test_the_hour_has_a_limit_of_its_own(store: Store) -> None:
    fetcher = Fetcher(lambda _s, _r, _n: True, (Rate(9, 60), Rate(3, 3600)))
    for _ in range(3):
        assert fetcher.fetch(store, REPO, 1)
    with pytest.raises(RateLimitError, match="3 issues in 3600 seconds"):
        fetcher.fetch(store, REPO, 1)


def test_the_json_route_tells_the_same_and_markdown_on_request(desk: TestClient) -> None:
    short = desk.get("/api/v1/issues/900/report")
    long = desk.get(f"/api/v1/repos/{REPO}/issues/900/report")
    text = desk.get("/api/v1/issues/900/report", headers=MARKDOWN)

    assert short.status_code == long.status_code == 200
    assert short.json() == long.json()
    assert {
        "facts",
        "error",
        "cause",
        "examples",
        "remedies",
        "fix",
        "regression",
        "graph",
        "timeline",
        "not_known",
    } <= set(short.json())
    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.startswith(f"# {REPO}#900")


@pytest.mark.parametrize(("number", "status"), [("901", 404), ("850", 422), ("0", 422), ("x", 422)])
def test_a_json_route_without_a_report_answers_a_problem(desk: TestClient, number: str, status: int) -> None:
    answer = desk.get(f"/api/v1/issues/{number}/report")

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status


def test_a_report_of_many_relations_is_a_page_of_bearable_weight(desk: TestClient, store: Store) -> None:
    output = " ".join(f"#{number}" for number in range(1000, 1000 + 2 * EDGES_LISTED))
    put(store, an_issue(950, body=f"These may belong to it: {output}\n"))
    page = desk.get("/report?url=950").text

    assert checked(page).text.count("stated in the issue's text") == EDGES_LISTED
    assert f"{EDGES_LISTED} more are in the" in checked(page).text
    assert "The Markdown is long; from a shell:" in checked(page).text
    assert len(desk.get("/api/v1/issues/950/report").json()["graph"]["edges"]) == 2 * EDGES_LISTED


def test_no_other_site_has_issues_fetched(desk: TestClient, github: GitHub) -> None:
    answer = desk.post("/report", data={"url": "77"}, headers={"sec-fetch-site": "cross-site"})

    assert (answer.status_code, github.asked) == (403, [])
