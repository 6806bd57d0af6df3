"""No secret of a pasted log reaches the database, the program's log, a page or an answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.config import LOG_LIMIT_BYTES, Settings
from app.errors import StoreError
from app.main import create_app
from app.store.schema import migrate
from app.store.session import open_store
from tests.secret_shapes import SHAPES, make_all, shown_forms
from tests.web.conftest import REPO, TestClient

SEED = 20261121
MADE = make_all(SEED)
Said = Callable[[], str]
JSON = {"content-type": "application/json"}
TEXT = {"content-type": "text/plain"}
MARKDOWN = {"content-type": "application/json", "accept": "text/markdown"}

CRASH = """\
(APIServer pid=412) INFO 06-03 03:12:44 [api_server.py:866] vLLM API server version 0.19.0
{line}
(EngineCore_DP0 pid=512) ERROR 06-03 03:12:45 [core.py:866] Traceback (most recent call last):
(EngineCore_DP0 pid=512) ERROR 06-03 03:12:45 [core.py:866]   File "/opt/vllm/vllm/v1/engine/core.py", line 7, in run
(EngineCore_DP0 pid=512) ERROR 06-03 03:12:45 [core.py:866] ValueError: the run ended with {line}
RuntimeError: Engine core initialization failed. See root cause above. {line}
OSError: {line}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leaks")


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[TestClient]:
    """A server with the real rooms behind it and a database file."""
    settings = Settings(database_url=f"sqlite:///{folder}/triage.db", repo=(REPO,), _env_file=None)  # type: ignore[call-arg]
    store = open_store(settings.database_url)
    migrate(store)
    with (
        pytest.MonkeyPatch.context() as patch,
        TestClient(
            create_app(settings, store), raise_server_exceptions=False, follow_redirects=False
        ) as opened,
    ):
        patch.setattr("app.knowledge.diagnosis.kept_logs.CLIENT_SHARE", 1)
        yield opened
    store.close()


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Said:
    """Tells what the program has printed and logged so far, at the finest level."""
    caplog.set_level(logging.DEBUG)
    for client in ("httpx", "httpx2", "httpcore"):  # the test's own browser, no part of the program
        caplog.set_level(logging.WARNING, client)

    def read() -> str:
        return "".join(capfd.readouterr()) + caplog.text

    return read


def assert_gone(secret: str, *texts: str) -> None:
    for form in shown_forms(secret):
        for text in texts:
            at = text.find(form)
            assert at < 0, text[max(0, at - 80) : at + 80].replace(form, "<the secret>")


def stored(folder: Path) -> str:
    """All bytes of the database, its log of changes and its temporary files."""
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(folder.iterdir()))


def test_there_are_more_than_sixty_shapes() -> None:
    assert len(SHAPES) >= 60
    assert len({secret for _, secret in MADE.values()}) == len(SHAPES)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if at % 4 else []) for at, name in enumerate(SHAPES)]
)
def test_a_secret_of_a_log_comes_out_nowhere(name: str, desk: TestClient, folder: Path, said: Said) -> None:
    line, secret = MADE[name]
    log = CRASH.format(line=line)
    document = json.dumps({"log": log, "keep": True})
    answer = desk.post("/api/v1/diagnose", content=document, headers=JSON)
    page = desk.post("/diagnose", data={"log": log, "keep": "1"})
    kept = desk.get(answer.json()["kept"]["url"])
    others = [
        desk.post("/api/v1/diagnose", content=document, headers=MARKDOWN),
        desk.post("/api/v1/diagnose?keep=1", content=log.encode(), headers=TEXT),
        desk.post("/diagnose", files={"file": ("crash.log", log.encode())}, data={"log": "x"}),
    ]

    assert [found.status_code for found in (answer, page, kept, *others)] == [200] * 6
    assert sum(item["count"] for item in answer.json()["redactions"]) >= 1
    assert_gone(secret, answer.text, page.text, kept.text, *(found.text for found in others), said())
    assert_gone(secret, stored(folder))


def test_all_shapes_in_one_log_are_masked_and_counted(desk: TestClient, folder: Path, said: Said) -> None:
    log = "\n".join(CRASH.format(line=line) for line, _ in MADE.values())
    answer = desk.post("/api/v1/diagnose", json={"log": log, "keep": True})
    page = desk.post("/diagnose", data={"log": log, "keep": "1"})
    kept = desk.get(answer.json()["kept"]["url"])
    words, database = said(), stored(folder)

    assert sum(item["count"] for item in answer.json()["redactions"]) >= len(SHAPES)
    for _, secret in MADE.values():
        assert_gone(secret, answer.text, page.text, kept.text, database, words)


@pytest.mark.parametrize("name", ["hub token bare", "vllm flag", "password", "bearer", "home", "e-mail"])
def test_a_refused_log_is_not_repeated(name: str, desk: TestClient, folder: Path, said: Said) -> None:
    line, secret = MADE[name]
    huge = (line + "\n") * (LOG_LIMIT_BYTES // len(line) + 1)
    refused = [
        desk.post("/api/v1/diagnose", content=huge.encode(), headers=TEXT),
        desk.post("/diagnose", files={"file": ("crash.log", huge.encode())}),
        desk.post("/api/v1/diagnose", content=f'{{"log": "{secret}", '.encode(), headers=JSON),
        desk.post("/api/v1/diagnose", content=json.dumps({"log": [secret]}), headers=JSON),
        desk.post(
            "/api/v1/diagnose", content=json.dumps({"log": "x", secret: 1, "limit": secret}), headers=JSON
        ),
        desk.post("/api/v1/diagnose", content=line.encode(), headers={"content-type": f"image/{secret[:9]}"}),
        desk.post("/api/v1/diagnose", content=line.encode() + b"\x00" * 900, headers=TEXT),
        desk.post("/diagnose", data={"log": line, "keep": secret}),
        desk.post("/api/v1/diagnose", params={"limit": secret}, content=b"x", headers=TEXT),
        desk.get("/" + secret),
        desk.get("/d/" + secret),
        desk.get("/api/v1/issues/" + secret),
    ]

    assert [found.status_code for found in refused] == [
        413,
        413,
        400,
        422,
        422,
        415,
        415,
        422,
        422,
        404,
        404,
        422,
    ]
    assert_gone(
        secret, *(found.text + str(found.headers) for found in refused), desk.get("/metrics").text, said()
    )
    assert_gone(secret, stored(folder))


def test_a_failure_inside_is_logged_without_the_log(
    desk: TestClient, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    """The exception's own words may hold a line of the log, so only its kind may be told."""
    line, secret = MADE["hub token bare"]

    def fail(*_args: object, **_options: object) -> None:
        raise KeyError(line)

    monkeypatch.setattr("app.web.routes.diagnose.ask", fail)
    answer = desk.post("/api/v1/diagnose", json={"log": line})

    assert answer.status_code == 500
    assert_gone(secret, answer.text, said())


def test_neither_id_nor_secret_of_a_kept_log_is_logged(
    desk: TestClient, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    kept = desk.post("/api/v1/diagnose", json={"log": CRASH, "keep": True}).json()["kept"]
    asked = [desk.get(kept["url"]), desk.get(kept["delete_url"])]

    def fail(*_args: object) -> None:
        raise StoreError("the database cannot be read")

    monkeypatch.setattr("app.web.routes.diagnose.view_kept_log", fail)
    monkeypatch.setattr("app.web.routes.diagnose.forget_log", fail)
    asked += [desk.get(kept["url"]), desk.get(kept["delete_url"]), desk.post(kept["delete_url"])]

    words = said()
    assert [answer.status_code for answer in asked] == [200, 200, 503, 503, 503]
    assert "store_unusable" in words
    _, _, key, _, secret = kept["delete_url"].split("/")
    assert_gone(key, words)
    assert_gone(secret, words)
