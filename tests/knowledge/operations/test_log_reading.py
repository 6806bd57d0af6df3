"""What a language model adds to the answer to a pasted log, and that without both yeses nothing is sent."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from app import model_reader
from app.config import Settings
from app.knowledge.diagnosis.diagnose import DiagnosedLog, diagnose_log
from app.knowledge.diagnosis.shapes import ModelReading
from app.knowledge.operations.log_reading import read_log_by_model
from app.main import create_app
from app.store.session import Store
from app.web import deps
from tests.command import triage
from tests.loopback import free_port
from tests.model_reader.replies import NOTHING, a_client, a_version, answered, content_of, line_of
from tests.model_reader.server import reader_server
from tests.samples import REPO
from tests.served import CRASH, starter_settings

QUIET = "".join(
    f"(APIServer pid=412) INFO 06-03 03:12:45 [loggers.py:{n}] all is well, {n}\n" for n in range(400)
)
LOG = f"""\
(APIServer pid=412) INFO 06-03 03:12:44 [api_server.py:866] token hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345
{QUIET}we tried it on vLLM 0.18.1 before and it was well, since the graph was never captured there
{CRASH}{QUIET}"""


NONE: dict[str, Any] = {**NOTHING, "kind": {"value": "other", "line": 1, "quote": "INFO"}}


def adds(content: str) -> dict[str, Any]:
    """A reply with two values that the log proves and one that it does not."""
    quote = "since the graph was never captured there"
    return {
        **NONE,
        "causes": [
            {"certainty": "hypothesis", "line": line_of(content, quote), "quote": quote},
            {"certainty": "stated", "line": 1, "quote": "the disk was full"},
        ],
        "versions": [a_version(content, "last_working", "0.18.1", "vLLM 0.18.1 before")],
    }


def diagnosed(store: Store) -> DiagnosedLog:
    return diagnose_log(store, LOG, repos=(REPO,))


def reading_of(
    store: Store, reply: Callable[[httpx.Request], httpx.Response], **options: Any
) -> ModelReading:
    with a_client(reply, **options) as client:
        found = read_log_by_model(diagnosed(store), client).diagnosis.model_reading
    assert found is not None
    return found


def test_values_are_added_with_the_log_s_own_line_and_words(sqlite_store: Store) -> None:
    sent: list[str] = []

    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(content_of(request))
        return answered(adds(sent[-1]))

    found = reading_of(sqlite_store, reply)
    assert found.model == "reader (weights-1)"
    assert {item.field for item in found.values} == {"cause", "regression.last_working"}
    lines = LOG.split("\n")
    assert all(item.quote in lines[item.line - 1] for item in found.values)
    assert "AbCdEf" not in sent[0]
    assert "CUDA error" in sent[0]
    assert len(sent[0]) < 30_000


def test_what_the_answer_has_already_is_not_added(sqlite_store: Store) -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        content = content_of(request)
        message = "CUDA error: operation not permitted when stream is capturing"
        version = a_version(content, "failing", "0.19.0", "API server version 0.19.0")
        error = {"type": "RuntimeError", "message": message, "line": line_of(content, message)}
        return answered({**NONE, "error": error, "versions": [version]})

    assert reading_of(sqlite_store, reply) == ModelReading(model="reader (weights-1)")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(503),
        httpx.ReadTimeout("slow"),
        answered("{", cut=True),
        answered("no"),
        httpx.Response(400, json={}),
    ],
)
def test_without_a_reply_of_use_the_answer_says_so(
    sqlite_store: Store, answer: httpx.Response | Exception
) -> None:
    def reply(_: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = reading_of(sqlite_store, reply, attempts=1)
    assert found.values == ()
    assert found.fault


def test_a_question_is_not_sent(sqlite_store: Store) -> None:
    with a_client(lambda _: answered(NOTHING)) as client:
        found = diagnose_log(sqlite_store, "why is it slow", repos=(REPO,))
        assert read_log_by_model(found, client) is found


def settings_of(folder: Path, url: str | None, *, allowed: bool) -> Settings:
    return starter_settings(folder, reader_url=url, reader_logs=allowed)


def bodies(client: TestClient, *, ticked: bool) -> dict[str, bytes]:
    """The first page and the answers of every way in, without what differs each time."""
    sent = {"log": LOG, **({"read_by_model": True} if ticked else {})}
    form = {"log": LOG, **({"read_by_model": "1"} if ticked else {})}
    api = client.post("/api/v1/diagnose", json=sent).json()
    api["took_ms"] = 0
    asked = "?read_by_model=1" if ticked else ""
    return {
        "first page": client.get("/").content,
        "api": json.dumps(api).encode(),
        "page": re.sub(rb"[\d.,]+ m?s\b", b"", client.post("/diagnose", data=form).content),
        "markdown": client.post("/api/v1/diagnose", json=sent, headers={"Accept": "text/markdown"}).content,
        "terminal": client.post(f"/{asked}", content=LOG, headers={"Content-Type": "text/plain"}).content,
    }


def test_without_both_yeses_nothing_is_sent_and_all_answers_are_the_same_bytes(tmp_path: Path) -> None:
    with reader_server(adds) as served:
        with TestClient(create_app(settings_of(tmp_path, None, allowed=True))) as client:
            plain = bodies(client, ticked=True)
        with TestClient(create_app(settings_of(tmp_path, served.url, allowed=False))) as client:
            assert bodies(client, ticked=True) == plain
        with TestClient(create_app(settings_of(tmp_path, served.url, allowed=True))) as client:
            unasked = bodies(client, ticked=False)
            assert unasked | {"first page": b""} == plain | {"first page": b""}
            assert b"read_by_model" in unasked["first page"]
        assert served.asked == []
        assert not any(b"read_by_model" in body or b"model_reading" in body for body in plain.values())


def test_with_both_yeses_every_way_in_shows_what_the_model_adds(tmp_path: Path) -> None:
    with (
        reader_server(adds) as served,
        TestClient(create_app(settings_of(tmp_path, served.url, allowed=True))) as client,
    ):
        found = bodies(client, ticked=True)
        kept = client.post("/api/v1/diagnose", json={"log": LOG, "read_by_model": True, "keep": True}).json()
        assert b"never captured there" in client.get(kept["kept"]["url"]).content
    added = json.loads(found["api"])["model_reading"]["values"]
    assert {item["field"] for item in added} == {"cause", "regression.last_working"}
    for name in ("page", "markdown", "terminal"):
        assert b"never captured there" in found[name]


def test_a_slow_or_dead_model_costs_a_bounded_time_and_no_one_else_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deps, "LOG_DEADLINE_S", 0.3)
    monkeypatch.setattr(model_reader, "LOG_DEADLINE_S", 1.0)
    with (
        reader_server(adds, answer_s=3.0) as served,
        TestClient(create_app(settings_of(tmp_path, served.url, allowed=True))) as client,
    ):
        began = time.monotonic()
        answer = client.post("/api/v1/diagnose", json={"log": LOG, "read_by_model": True})
        assert time.monotonic() - began < 2.5
    assert answer.status_code == 200
    assert answer.json()["model_reading"]["fault"] == "the model reader did not answer in time"
    assert answer.json()["verdict"]
    away = settings_of(tmp_path, f"http://127.0.0.1:{free_port()}", allowed=True)
    with TestClient(create_app(away)) as client:
        answer = client.post("/api/v1/diagnose", json={"log": LOG, "read_by_model": True})
    assert "does not answer" in answer.json()["model_reading"]["fault"]


def test_the_command_needs_the_setting_and_the_flag(tmp_path: Path) -> None:
    starter_settings(tmp_path)
    log = LOG.encode()
    with reader_server(adds) as served:
        settings = {"TRIAGE_READER_URL": served.url}
        flag = ("diagnose", "--format", "json", "--read-by-model")
        refused = triage(*flag, folder=tmp_path, given=log, **settings)
        assert (refused.returncode, b"TRIAGE_READER_LOGS=1" in refused.stderr) == (2, True)
        allowed = settings | {"TRIAGE_READER_LOGS": "1"}
        without = triage("diagnose", "--format", "json", folder=tmp_path, given=log, **allowed)
        assert b"model_reading" not in without.stdout
        assert served.asked == []
        found = triage(*flag, folder=tmp_path, given=log, **allowed)
    assert json.loads(found.stdout)["model_reading"]["values"]
