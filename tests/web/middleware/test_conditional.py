"""Who has an answer already gets 304, and HEAD tells what GET would."""

from __future__ import annotations

from fastapi.testclient import TestClient

from tests.rows import over_rows
from tests.web.conftest import ISSUE, Room

ISSUE_ROUTE = "/api/v1/issues/39288"
READS = [
    ISSUE_ROUTE,
    f"{ISSUE_ROUTE}/related",
    "/api/v1/regressions",
    "/api/v1/versions/0.19.0/known-issues",
    "/openapi.json",
    "/llms.txt",
    "/robots.txt",
    "/issues/39288.md",
    "/issues/39288",
]


@over_rows("path", READS)
def test_a_read_is_tagged_and_not_sent_twice(client: TestClient, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"if-none-match": first.headers["etag"]})

    assert (first.status_code, again.status_code) == (200, 304)
    assert again.content == b""
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["cache-control"] == first.headers["cache-control"] == "no-cache"
    assert "content-length" not in again.headers
    assert "Accept-Encoding" in again.headers["vary"]
    assert again.headers["content-security-policy"]


def test_another_answer_has_another_tag(client: TestClient, room: Room) -> None:
    tag = client.get(ISSUE_ROUTE).headers["etag"]
    room.issue = ISSUE.model_copy(update={"comments": 2})

    answer = client.get(ISSUE_ROUTE, headers={"if-none-match": tag})

    assert answer.status_code == 200
    assert answer.headers["etag"] != tag


def test_json_and_markdown_have_tags_of_their_own(client: TestClient) -> None:
    found = client.get(ISSUE_ROUTE), client.get(ISSUE_ROUTE, headers={"accept": "text/markdown"})

    assert found[0].headers["etag"] != found[1].headers["etag"]


def test_the_tag_is_the_same_with_and_without_compression(client: TestClient) -> None:
    plain = client.get(ISSUE_ROUTE, headers={"accept-encoding": "identity"})
    packed = client.get(ISSUE_ROUTE, headers={"accept-encoding": "gzip"})

    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["etag"] == packed.headers["etag"]
    assert plain.headers["etag"].startswith('W/"')


@over_rows("form", ["{0}", 'W/"x", {0}', "{1}", "*", '"a",{1} ,"b"', "  {0}  "])
def test_tags_are_compared_weakly_and_in_lists(client: TestClient, form: str) -> None:
    tag = client.get(ISSUE_ROUTE).headers["etag"]

    answer = client.get(ISSUE_ROUTE, headers={"if-none-match": form.format(tag, tag.removeprefix("W/"))})

    assert answer.status_code == 304


@over_rows("form", ["", '"x"', "W/", '"', "x" * 5000, "{0}x", '"{0}"'])
def test_what_names_another_answer_is_no_match(client: TestClient, form: str) -> None:
    tag = client.get(ISSUE_ROUTE).headers["etag"]

    assert client.get(ISSUE_ROUTE, headers={"if-none-match": form.format(tag)}).status_code == 200


@over_rows("path", [*READS, "/healthz", "/static/app.js", "/"])
def test_head_tells_what_get_would(client: TestClient, path: str) -> None:
    plain = {"accept-encoding": "identity"}
    got, headed = client.get(path, headers=plain), client.head(path, headers=plain)

    assert (headed.status_code, headed.content) == (200, b"")
    assert headed.headers["content-length"] == str(len(got.content))
    assert headed.headers.get("etag") == got.headers.get("etag")


def test_head_of_a_form_is_refused_without_a_body(client: TestClient) -> None:
    answer = client.head("/api/v1/diagnose")

    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")


def test_failures_health_and_posts_are_not_tagged(client: TestClient) -> None:
    answers = [
        client.get("/api/v1/issues/0"),
        client.get("/nowhere"),
        client.get("/healthz"),
        client.get("/metrics"),
        client.post("/api/v1/diagnose", json={"log": "x"}),
        client.post("/diagnose", data={"log": "x"}),
    ]

    assert ["etag" in answer.headers for answer in answers] == [False] * 6


def test_a_fault_while_a_head_is_answered_sends_no_body(client: TestClient, room: Room) -> None:
    room.failure = RuntimeError("broken")

    answer = client.head(ISSUE_ROUTE)

    assert (answer.status_code, answer.content) == (500, b"")
