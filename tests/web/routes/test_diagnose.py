"""The JSON routes keep the public contract.

A log is kept only if its owner wishes so: masked, for a time, with a link that deletes it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.config import LOG_LIMIT_BYTES, Settings
from app.errors import NotFoundError, StoreError
from app.knowledge.diagnosis import kept_logs
from app.main import create_app
from app.store.people import sum_kept_logs
from app.store.session import Store
from app.web.answers.negotiate import MARKDOWN_TYPE, wants
from tests.rows import over_rows
from tests.samples import marlin_log
from tests.web.conftest import REPO, SAME, UNKNOWN, Room

LOG = "RuntimeError: CUDA error: an illegal memory access was encountered"
TEXT = {"content-type": "text/plain"}


def test_a_log_as_json_is_diagnosed_with_all_that_was_asked(client: TestClient, room: Room) -> None:
    answer = client.post(
        "/api/v1/diagnose",
        json={
            "log": LOG,
            "vllm_version": " 0.19.0 ",
            "gpu": "H100",
            "model": "",
            "limit": 3,
            "exclude": [5, 5],
        },
    )

    assert answer.status_code == 200
    assert answer.json()["verdict"] == "same"
    assert answer.json()["workarounds"][0]["number"] == 39288
    assert room.asked == [
        {
            "log": LOG,
            "repos": (REPO,),
            "vllm_version": "0.19.0",
            "gpu": "H100",
            "model": None,
            "limit": 3,
            "exclude": frozenset({5}),
            "embed": None,
        },
    ]


def test_a_log_as_plain_text_takes_its_options_from_the_address(client: TestClient, room: Room) -> None:
    answer = client.post(
        "/api/v1/diagnose?limit=2&exclude=1&exclude=2&vllm_version=0.19.0", content=LOG, headers=TEXT
    )

    assert answer.status_code == 200
    assert (room.asked[0]["limit"], room.asked[0]["vllm_version"]) == (2, "0.19.0")
    assert room.asked[0]["exclude"] == frozenset({1, 2})


def test_the_limit_is_ten_unless_told(client: TestClient, room: Room) -> None:
    client.post("/api/v1/diagnose", json={"log": LOG})

    assert room.asked[0]["limit"] == 10


def test_markdown_is_given_to_who_accepts_it(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={"log": LOG}, headers={"accept": "text/markdown"})

    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "Accept" in answer.headers["vary"]
    assert answer.text.startswith("**You hit #39288")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/markdown", True),
        ("TEXT/MARKDOWN;q=0.9, */*;q=0.1", True),
        ("*/*", False),
        ("", False),
        ("application/json, text/markdown;q=0.5", False),
        ("text/markdown;q=0", False),
        ("text/markdown;q=x", False),
        ("text/markdown;q=nan", False),
        (",;,;", False),
    ],
)
def test_the_accept_header_is_weighed(accept: str, wanted: bool) -> None:
    assert wants(accept, MARKDOWN_TYPE) is wanted


@over_rows(
    "fields",
    [
        {},
        {"log": None},
        {"log": 5},
        {"log": ["a"]},
        {"log": {"a": 1}},
        {"log": ""},
        {"log": " \n"},
        {"log": "\u0000"},
        {"log": LOG, "limit": 0},
        {"log": LOG, "limit": 51},
        {"log": LOG, "limit": "ten"},
        {"log": LOG, "limit": True},
        {"log": LOG, "limit": 1.5},
        {"log": LOG, "exclude": 5},
        {"log": LOG, "exclude": ["5"]},
        {"log": LOG, "exclude": [0]},
        {"log": LOG, "exclude": [2**63]},
        {"log": LOG, "vllm_version": 0.19},
        {"log": LOG, "vllm_version": "9" * 101},
        {"log": LOG, "vllm_version": "banana"},
        {"log": LOG, "vllm_version": "0.99banana"},
        {"log": LOG, "vllm_verson": "0.21.0"},
        {"log": LOG, "gpu": ["H100"]},
        {"log": LOG, "model": {}},
    ],
)
def test_fields_that_cannot_be_used_are_422(client: TestClient, fields: dict[str, object]) -> None:
    answer = client.post(
        "/api/v1/diagnose", content=json.dumps(fields), headers={"content-type": "application/json"}
    )

    assert answer.status_code in ({422, 415} if fields.get("log") == "\u0000" else {422})
    assert_problem(answer, answer.status_code)


def test_a_misspelt_field_is_refused_with_the_nearest(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={"log": LOG, "vllm_verson": "0.21.0"})
    batch = client.post("/api/v1/diagnose/batch", json={"logs": [{"log": LOG, "modle": "x"}]})

    assert answer.json()["detail"] == "vllm_verson: is no field of this body; the nearest is vllm_version."
    assert batch.json()["detail"] == "logs.0.modle: is no field of this body; the nearest is model."


def test_plain_text_keeps_its_budget(client: TestClient) -> None:
    headers = {"accept": "text/plain", "content-type": "text/plain"}
    answer = client.post("/api/v1/diagnose?max_chars=300", content=LOG, headers=headers)

    assert len(answer.text) <= 300
    assert answer.text.endswith(" more lines: ask with a larger max_chars]\n")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "exclude=-1", "exclude=9999999999999999999999", "limit=51"]
)
def test_query_parameters_out_of_range_are_422(client: TestClient, query: str) -> None:
    assert_problem(client.post(f"/api/v1/diagnose?{query}", content=LOG, headers=TEXT), 422)


@over_rows(
    ("content", "headers", "status"),
    [
        (b"", TEXT, 422),
        (b"x" * (LOG_LIMIT_BYTES + 1), TEXT, 413),
        (bytes(range(256)) * 40, TEXT, 415),
        (b"log=x", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b"x", {"content-type": "image/png"}, 415),
        (b"x", {}, 415),
        (b"x", {"content-type": "text/plain", "content-encoding": "gzip"}, 415),
        (gzip.compress(b"x"), {"content-type": "application/json", "content-encoding": "gzip"}, 415),
        (b"{", {"content-type": "application/json"}, 400),
        (b"x", {"content-type": "text/plain", "content-length": "99999999999"}, 413),
    ],
)
def test_bodies_that_cannot_be_used_are_told_apart(
    client: TestClient, content: bytes, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/api/v1/diagnose", content=content, headers=headers)

    assert_problem(answer, status)


@pytest.mark.parametrize("encoding", [{}, {"content-encoding": "gzip"}])
def test_a_packed_log_is_read(client: TestClient, encoding: dict[str, str]) -> None:
    sent = {"content": gzip.compress(LOG.encode()), "headers": TEXT | encoding}
    packed, plain = (
        client.post("/api/v1/diagnose", **sent),
        client.post("/api/v1/diagnose", content=LOG, headers=TEXT),
    )

    assert packed.json()["root_cause"]
    assert packed.json()["root_cause"] == plain.json()["root_cause"]


def test_a_body_without_a_declared_length_is_refused_while_it_streams(client: TestClient) -> None:
    sent = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal sent
        for _ in range(30):
            sent += 1
            yield b"x" * (1024 * 1024)

    assert_problem(client.post("/api/v1/diagnose", content=endless(), headers=TEXT), 413)


def test_an_issue_is_given_with_facts_and_evidence(client: TestClient, room: Room) -> None:
    answer = client.get("/api/v1/issues/39288?vllm_version=0.19.0").json()

    assert (answer["repo"], answer["number"], answer["fix"]["state"]) == (REPO, 39288, "not_fixed")
    assert answer["evidence"][0]["quote"] == "NVIDIA H100 80GB HBM3"
    assert room.asked == [{"repo": REPO, "number": 39288, "vllm_version": "0.19.0", "versions_of": REPO}]


def test_an_issue_of_any_repository_has_a_long_address(client: TestClient, room: Room) -> None:
    assert client.get("/api/v1/repos/other/thing.py/issues/7").status_code == 200
    assert room.asked[0]["repo"] == "other/thing.py"


def test_an_issue_that_is_not_stored_is_404(client: TestClient, room: Room) -> None:
    room.failure = NotFoundError("#7 of vllm-project/vllm is not stored")
    problem = assert_problem(client.get("/api/v1/issues/7"), 404)

    assert problem["detail"] == "#7 of vllm-project/vllm is not stored"
    assert problem["type"] == "urn:vllm-triage:problem:not-found"


@over_rows("number", ["abc", "0", "-1", "1.5", "99999999999999999999", "9" * 5000, "%00", "1%20or"])
def test_what_is_no_issue_number_is_a_problem(client: TestClient, number: str) -> None:
    assert_problem(client.get(f"/api/v1/issues/{number}"), 422)


def test_a_database_that_fails_is_503_and_its_words_stay_inside(client: TestClient, room: Room) -> None:
    room.failure = StoreError("the database refused: connection to 10.1.2.3 failed for user admin")
    answer = client.post("/api/v1/diagnose", json={"log": LOG})

    assert "10.1.2.3" not in assert_problem(answer, 503)["detail"]
    assert answer.headers["retry-after"] == "30"


def test_the_description_has_stable_operation_ids_and_the_one_error_shape(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    operations = {
        operation["operationId"]: operation
        for path in described["paths"].values()
        for operation in path.values()
    }

    expected = {"diagnose", "get_issue", "get_repo_issue", "list_related_issues", "healthz", "readyz"}
    assert expected <= set(operations)
    assert {"400", "413", "415", "422", "503"} <= set(operations["diagnose"]["responses"])
    assert {"404", "422", "503"} <= set(operations["get_issue"]["responses"])
    body = operations["diagnose"]["requestBody"]["content"]
    assert set(body) == {"application/json", "text/plain"}
    schemas = described["components"]["schemas"]
    assert schemas["DiagnoseRequest"]["properties"]["log"]["minLength"] == 1
    assert schemas["DiagnoseRequest"]["properties"]["log"]["pattern"] == r"\S"
    assert {"type", "title", "status", "detail"} <= set(schemas["Problem"]["required"])
    for operation in operations.values():
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]


def test_every_reference_of_the_description_leads_somewhere(client: TestClient) -> None:
    described = client.get("/openapi.json").text
    schemas = json.loads(described)["components"]["schemas"]
    references = {part.split('"')[0] for part in described.split("#/components/schemas/")[1:]}

    assert references <= set(schemas)
    assert "HTTPValidationError" not in schemas


def assert_problem(answer, status: int) -> dict[str, object]:  # type: ignore[no-untyped-def]
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert {"type", "title", "status", "detail"} <= set(problem)
    assert problem["status"] == status
    assert "Traceback" not in answer.text
    return dict(problem)


def test_relations_are_a_list_and_the_pair_asked_for_is_alone(client: TestClient, room: Room) -> None:
    everything = client.get("/api/v1/issues/39288/related?limit=7").json()
    pair = client.get("/api/v1/issues/39288/related?with=30579").json()

    assert set(everything) == {"items", "next_cursor", "total"}
    assert pair["total"] == len(pair["items"])
    assert room.asked == [
        {"repo": REPO, "number": 39288, "limit": 7},
        {"repo": REPO, "number": 39288, "with": 30579},
    ]


HUB = "hf" + "_" + "abcdefghij1234567890" * 2
LOG_KEPT = f"(pid=1, ip=10.20.30.40) ERROR boom\nValueError: token {HUB}\n"


def rows(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM kept_log")).scalar_one())


def keep(client: TestClient, log: str = LOG_KEPT) -> dict[str, str]:
    kept: dict[str, str] = client.post("/api/v1/diagnose", json={"log": log, "keep": True}).json()["kept"]
    return kept


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.post("/api/v1/diagnose", json={"log": LOG_KEPT}),
        lambda client: client.post("/api/v1/diagnose", json={"log": LOG_KEPT, "keep": False}),
        lambda client: client.post(
            "/api/v1/diagnose", content=LOG_KEPT, headers={"content-type": "text/plain"}
        ),
        lambda client: client.post("/diagnose", data={"log": LOG_KEPT}),
    ],
)
def test_a_log_is_not_kept_unless_asked_for(
    client: TestClient, store: Store, ask: Callable[..., object]
) -> None:
    ask(client)

    assert rows(store) == 0


def test_the_answer_without_keeping_has_no_such_key(client: TestClient) -> None:
    assert "kept" not in client.post("/api/v1/diagnose", json={"log": LOG_KEPT}).json()


def test_a_kept_log_has_an_address_and_a_delete_link_of_128_bits_each(client: TestClient) -> None:
    answer = client.post("/api/v1/diagnose", json={"log": LOG_KEPT, "keep": True}).json()

    assert re.fullmatch(r"/d/[0-9a-f]{32}", answer["kept"]["url"])
    assert re.fullmatch(rf"{answer['kept']['url']}/delete/[0-9a-f]{{32}}", answer["kept"]["delete_url"])
    assert answer["verdict"] == SAME.verdict


def test_its_page_shows_the_answer_and_the_masked_log_and_is_not_to_be_indexed(client: TestClient) -> None:
    page = client.get(keep(client)["url"])

    assert page.status_code == 200
    assert (page.headers["x-robots-tag"], page.headers["cache-control"]) == ("noindex", "no-store")
    assert 'name="robots" content="noindex"' in page.text
    assert "#39288" in page.text
    assert f"ValueError: token {'█' * len(HUB)}" in page.text
    assert "10.20.30.40" not in page.text


def test_a_form_keeps_with_a_tick_and_only_its_answer_tells_the_delete_link(
    client: TestClient, store: Store
) -> None:
    page = client.post("/diagnose", data={"log": LOG_KEPT, "keep": "1"}).text
    found = re.search(r'href="(/d/[0-9a-f]{32})/delete/([0-9a-f]{32})"', page)

    assert found is not None
    assert "no permalink" not in page
    assert found[2] not in client.get(found[1]).text
    assert rows(store) == 1


def test_plain_text_and_markdown_keep_too(client: TestClient) -> None:
    headers = {"content-type": "text/plain", "accept": "text/markdown"}
    found = client.post("/api/v1/diagnose?keep=1", content=LOG_KEPT, headers=headers).text

    assert re.search(
        r"Kept until \d{4}-\d\d-\d\d: /d/[0-9a-f]{32}\. To delete it: /d/[0-9a-f]{32}/delete/", found
    )


def test_the_delete_link_asks_first_and_its_button_deletes(client: TestClient, store: Store) -> None:
    kept = keep(client)
    asked = client.get(kept["delete_url"])

    assert (asked.status_code, rows(store)) == (200, 1)
    assert f'action="{kept["delete_url"]}" method="post"' in asked.text
    assert client.post(kept["delete_url"]).status_code == 200
    assert (client.get(kept["url"]).status_code, rows(store)) == (404, 0)
    assert client.post(kept["delete_url"]).status_code == 404


def test_another_secret_deletes_nothing(client: TestClient, store: Store) -> None:
    kept = keep(client)

    assert client.post(f"{kept['url']}/delete/{'0' * 32}").status_code == 404
    assert rows(store) == 1


def test_the_secret_itself_is_not_stored(client: TestClient, store: Store) -> None:
    secret = keep(client)["delete_url"].rpartition("/")[2]
    with store.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM kept_log")).one()

    assert secret not in str(row)


@over_rows("key", ["0" * 32, "x", "A" * 32, "0" * 33, "%00", "é"])
def test_there_is_nothing_under_another_address(client: TestClient, key: str) -> None:
    assert client.get(f"/d/{key}").status_code == 404


def test_a_kept_log_goes_when_its_time_is_over(client: TestClient, store: Store, settings: Settings) -> None:
    kept = keep(client)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=settings.keep_days, seconds=1)):
        assert client.get(kept["url"]).status_code == 404
        assert rows(store) == 1
        keep(client)
        assert rows(store) == 1


def test_a_start_of_the_server_forgets_what_is_over(
    client: TestClient, store: Store, settings: Settings
) -> None:
    keep(client)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=31)), TestClient(create_app(settings, store)):
        assert rows(store) == 0


def test_of_a_long_log_start_and_end_are_kept(client: TestClient) -> None:
    log = "".join(f"line {number} of a long log\n" for number in range(60_000))
    page = client.get(keep(client, log)["url"]).text

    assert "line 0 of" in page
    assert "line 59999 of" in page
    assert "lines are not kept" in page
    assert len(page) < 1.1 * kept_logs.KEPT_BYTES


def test_of_a_log_of_long_signs_no_more_bytes_are_kept(client: TestClient, store: Store) -> None:
    keep(client, "🦙 and 龙\n" * 300_000)

    with store.reading() as session:
        assert sum_kept_logs(session)[1] < 1.1 * kept_logs.KEPT_BYTES


@pytest.mark.parametrize(("name", "most"), [("KEPT_LOGS_MAX", 102), ("KEPT_TOTAL_BYTES", 500_000)])
def test_a_client_that_keeps_its_share_is_refused_and_others_are_not(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(kept_logs, name, most)
    asked = settings.model_copy(update={"trusted_proxies": ("127.0.0.1",)})
    with TestClient(create_app(asked, store), client=("127.0.0.1", 1)) as client:

        def keep_as(address: str) -> tuple[int, str]:
            document = {"log": LOG_KEPT, "keep": True}
            headers = {"x-forwarded-for": address}
            answer = client.post("/api/v1/diagnose", json=document, headers=headers)
            return answer.status_code, answer.text

        mine = [keep_as("203.0.113.1") for _ in range(9)]
        others = [keep_as(f"203.0.113.{at}")[0] for at in (2, 3)]

    kept = [status for status, _ in mine].count(200)
    assert 1 <= kept < 9
    assert mine[-1][0] == 429
    assert "without keeping it" in mine[-1][1]
    assert others == [200, 200]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_sign_that_no_address_has_is_no_fault(client: TestClient, engine: str) -> None:
    """PostgreSQL's texts hold no NUL."""
    addresses = ["/d/%00", "/d/a%00b/delete/%00"]

    assert [client.get(address).status_code for address in addresses] == [404, 404]
    assert client.post(addresses[1]).status_code == 404


def test_curl_at_the_first_page_gets_text_for_a_terminal(client: TestClient) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}  # as curl says of --data-binary
    plain = client.post("/", content=LOG, headers=form)
    coloured = client.post("/?color&vllm_version=0.9.1", content=LOG, headers=form).text

    assert (plain.status_code, plain.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert plain.text.startswith("SAME FAILURE 97%")
    assert "\x1b" not in plain.text
    assert len(plain.text.splitlines()) <= 40
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain.text != coloured


def test_text_is_chosen_at_the_json_route_too(client: TestClient) -> None:
    accept = {"accept": "text/plain", "content-type": "text/plain"}
    answer = client.post("/api/v1/diagnose", content=LOG, headers=accept)

    assert answer.text.startswith("SAME FAILURE 97%")
    assert answer.headers["vary"].startswith("Accept")


def test_a_fault_of_curl_is_one_line(client: TestClient) -> None:
    answer = client.post("/", content="  ")

    assert (answer.status_code, answer.text.count("\n")) == (422, 1)


def test_each_log_has_its_line_in_order_also_one_at_fault(client: TestClient, room: Room) -> None:
    logs = [{"log": f"{LOG} {n}", "limit": n + 1} for n in range(3)] + [{"log": "\x01 \x02"}, {"log": LOG}]
    answer = client.post("/api/v1/diagnose/batch", json={"logs": logs})
    lines = [json.loads(line) for line in answer.text.splitlines()]

    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [asked["log"] for asked in room.asked] == [f"{LOG} {n}" for n in range(3)] + [LOG]
    assert [line.get("verdict") for line in lines] == ["same", "same", "same", None, "same"]
    assert lines[3]["status"] in {415, 422}


def test_a_batch_is_refused_whole_where_its_shape_is_wrong(client: TestClient, room: Room) -> None:
    for body in ({"logs": []}, {"logs": [{"log": LOG}] * 101}, {"logs": [{"log": " "}]}, {}):
        assert client.post("/api/v1/diagnose/batch", json=body).status_code == 422
    assert client.post("/api/v1/diagnose/batch", content=LOG).status_code == 415
    assert not room.asked


def test_each_log_counts_against_the_limit(store: Store) -> None:
    settings = Settings(rate_limit="5/hour", _env_file=None)  # type: ignore[call-arg]
    with TestClient(create_app(settings, store)) as client:
        first = client.post("/api/v1/diagnose/batch", json={"logs": [{"log": LOG}] * 4})
        second = client.post("/api/v1/diagnose/batch", json={"logs": [{"log": LOG}] * 2})

    assert (first.status_code, second.status_code) == (200, 429)
    assert "Each log counts" in second.json()["detail"]


COMMENT_ROUTE = "/api/v1/comment"
REPORT_BODY = f"It dies.\n\n```text\n{marlin_log()}\n```"


def opened_event(body: str = REPORT_BODY, action: str = "opened") -> str:
    issue = {"number": 77, "title": "[Bug]: it dies", "body": body}
    return json.dumps({"action": action, "issue": issue, "repository": {"full_name": REPO}})


def write_comment(client: TestClient, text: str) -> object:
    answer = client.post(COMMENT_ROUTE, content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()["body"]


def test_a_known_failure_gets_a_comment(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.routes.diagnose.diagnose", lambda *_, **__: SAME)

    assert f"#{SAME.matches[0].number}" in str(write_comment(client, opened_event()))


def test_there_is_nothing_to_say_of_the_unknown_and_of_other_events(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.routes.diagnose.diagnose", lambda *_, **__: UNKNOWN)

    assert write_comment(client, opened_event()) is None
    assert write_comment(client, opened_event(action="closed")) is None
    assert write_comment(client, opened_event("Thanks for this.")) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", "{", "\\ud800", "[" * 100_000])
def test_what_is_no_event_is_refused(client: TestClient, content: str) -> None:
    answer = client.post(COMMENT_ROUTE, content=content, headers={"content-type": "application/json"})

    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
