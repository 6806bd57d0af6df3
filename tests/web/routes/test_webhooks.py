"""A delivery is proved before it is read; what is proved is handed to the post room and answered soon."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from app.config import Settings
from app.errors import InputError, StoreError
from app.main import create_app
from app.store.session import Store
from app.web.routes import webhooks
from app.web.routes.webhooks import BusyError, Intake
from tests.web.conftest import REPO, TestClient

SECRET = "a secret of our own, 42"
PAYLOAD = {"action": "opened", "repository": {"full_name": REPO}, "issue": {"number": 7}}


BUSY_S = 20.0
"""How long a busy archive keeps a delivery waiting."""


@dataclass
class PostRoom:
    """Notes what it is given; may be slow, or fail."""

    given: list[tuple[str, Any, str]] = field(default_factory=list)
    failure: Exception | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    slow: bool = False

    def __call__(self, store: Store, repos: Any, event: str, payload: Any, /, *, delivery_id: str) -> Any:
        assert tuple(repos) == (REPO,)
        if self.slow:
            self.gate.wait(BUSY_S)
        if self.failure:
            raise self.failure
        seen = any(known == delivery_id for _, _, known in self.given)
        self.given.append((event, payload, delivery_id))
        return "seen" if seen else "stored"


@pytest.fixture
def post_room() -> PostRoom:
    return PostRoom()


@pytest.fixture
def desk(settings: Settings, store: Store, post_room: PostRoom) -> Iterator[TestClient]:
    given = settings.model_copy(update={"webhook_secret": SecretStr(SECRET)})
    with TestClient(create_app(given, store, take=post_room), raise_server_exceptions=False) as opened:
        yield opened
        post_room.gate.set()


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def send(
    client: TestClient,
    payload: Any = PAYLOAD,
    *,
    key: str = "d-1",
    event: str = "issues",
    **headers: str | None,
) -> Any:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    found: dict[str, str | None] = {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": key,
        "x-hub-signature-256": sign(body),
    }
    found |= {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(
        "/webhooks/github", content=body, headers={k: v for k, v in found.items() if v is not None}
    )


def assert_refused(answer: Any, status: int, post_room: PostRoom) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert SECRET not in answer.text
    assert post_room.given == []
    return str(answer.json()["detail"])


def test_a_signed_delivery_is_handed_in(desk: TestClient, post_room: PostRoom) -> None:
    answer = send(desk)

    assert (answer.status_code, answer.json()) == (202, {"status": "stored"})
    assert post_room.given == [("issues", PAYLOAD, "d-1")]


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "",
        "sha256=",
        "sha256=" + "0" * 64,
        "sha1=" + "0" * 40,
        "sha256=" + "é" * 64,
        sign(json.dumps(PAYLOAD).encode(), "another secret"),
        sign(b"another body"),
        sign(json.dumps(PAYLOAD).encode()).upper(),
    ],
)
def test_a_forged_delivery_is_refused_and_not_read(
    desk: TestClient, post_room: PostRoom, signature: str | None
) -> None:
    given = signature.encode("latin-1").decode("latin-1") if signature else signature
    body = json.dumps(PAYLOAD).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"x-github-event", b"issues"),
        (b"x-github-delivery", b"d"),
    ]
    if given is not None:
        headers.append((b"x-hub-signature-256", given.encode("latin-1")))
    assert_refused(desk.post("/webhooks/github", content=body, headers=headers), 401, post_room)


def test_a_forged_delivery_that_is_no_json_is_401_too(desk: TestClient, post_room: PostRoom) -> None:
    assert_refused(send(desk, b"\xff{", x_hub_signature_256=sign(b"")), 401, post_room)
    assert_refused(send(desk, b"", x_hub_signature_256=None, x_github_event=None), 401, post_room)


def test_without_a_secret_nothing_is_taken(settings: Settings, store: Store, post_room: PostRoom) -> None:
    with TestClient(create_app(settings, store, take=post_room)) as client:
        answer = send(client)

    assert "TRIAGE_WEBHOOK_SECRET" in assert_refused(answer, 404, post_room)


def test_a_blank_secret_is_none() -> None:
    assert Settings(webhook_secret="  ", _env_file=None).webhook_secret is None  # type: ignore[call-arg]


def test_a_declared_size_over_the_limit_is_refused_unread(desk: TestClient, post_room: PostRoom) -> None:
    answer = send(desk, b"{}", content_length=str(webhooks.BODY_LIMIT_BYTES + 1))

    assert "25 MiB" in assert_refused(answer, 413, post_room)


def test_a_body_over_the_limit_is_refused_while_it_streams(
    desk: TestClient, post_room: PostRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "BODY_LIMIT_BYTES", 3 << 20)
    chunks = iter([b" " * (1 << 20)] * 40)
    headers = {"x-hub-signature-256": sign(b""), "x-github-event": "issues", "x-github-delivery": "d"}

    assert_refused(desk.post("/webhooks/github", content=chunks, headers=headers), 413, post_room)


def test_the_largest_delivery_is_taken(desk: TestClient, post_room: PostRoom) -> None:
    body = b'{"a": "' + b"x" * (webhooks.BODY_LIMIT_BYTES - 9) + b'"}'
    assert len(body) == webhooks.BODY_LIMIT_BYTES

    assert send(desk, body).status_code == 202


def test_a_replayed_delivery_is_accepted_and_said_to_be_seen(desk: TestClient) -> None:
    assert [send(desk, key="twice").json()["status"] for _ in range(2)] == ["stored", "seen"]


def test_a_delivery_that_is_no_json_is_malformed(desk: TestClient, post_room: PostRoom) -> None:
    for body in (b"{", b"\xff\xfe", b"[" * 100_000):
        assert_refused(send(desk, body), 400, post_room)


def test_a_delivery_sent_as_a_form_says_what_to_change(desk: TestClient, post_room: PostRoom) -> None:
    answer = send(desk, b"payload=%7B%7D", content_type="application/x-www-form-urlencoded")

    assert "application/json" in assert_refused(answer, 415, post_room)


@pytest.mark.parametrize(
    "headers",
    [
        {"x_github_event": None},
        {"x_github_delivery": None},
        {"x_github_delivery": "x" * 65},
        {"x_github_event": "issues; drop"},
        {"x_github_delivery": ""},
    ],
)
def test_a_delivery_without_its_headers_cannot_be_used(
    desk: TestClient, post_room: PostRoom, headers: Any
) -> None:
    assert_refused(send(desk, **headers), 422, post_room)


def test_a_payload_that_cannot_be_used_is_told(desk: TestClient, post_room: PostRoom) -> None:
    post_room.failure = InputError("number is missing")

    assert "number is missing" in assert_refused(send(desk), 422, post_room)


def test_a_database_that_refuses_is_503_so_that_it_can_be_sent_again(
    desk: TestClient, post_room: PostRoom, capsys: pytest.CaptureFixture[str]
) -> None:
    post_room.failure = StoreError("the database refused: disk full at 10.1.2.3")
    detail = assert_refused(send(desk, key="lost"), 503, post_room)
    output = capsys.readouterr()

    assert "10.1.2.3" not in detail
    assert "delivery_failed" in output.out + output.err
    assert "lost" in output.out + output.err


def test_a_busy_archive_does_not_delay_the_answer_or_lose_the_delivery(
    desk: TestClient, post_room: PostRoom
) -> None:
    post_room.slow = True
    began = time.monotonic()
    answers = [send(desk, key=f"d-{n}") for n in range(2)]
    took = time.monotonic() - began

    assert [answer.json() for answer in answers] == [{"status": "accepted"}] * 2
    assert took < BUSY_S / 2
    assert post_room.given == []
    post_room.gate.set()
    for _ in range(200):
        if len(post_room.given) == 2:
            break
        time.sleep(0.02)
    assert [key for _, _, key in post_room.given] == ["d-0", "d-1"]


def test_other_requests_are_answered_while_a_delivery_waits(desk: TestClient, post_room: PostRoom) -> None:
    post_room.slow = True
    waiting = [threading.Thread(target=send, args=(desk,), kwargs={"key": f"d-{n}"}) for n in range(20)]
    for thread in waiting:
        thread.start()
    began = time.monotonic()
    assert desk.get("/healthz").status_code == 200
    assert time.monotonic() - began < 0.5
    post_room.gate.set()
    for thread in waiting:
        thread.join()


def test_what_was_accepted_is_stored_before_the_server_ends(
    settings: Settings, store: Store, post_room: PostRoom
) -> None:
    given = settings.model_copy(update={"webhook_secret": SecretStr(SECRET)})
    post_room.slow = True
    with TestClient(create_app(given, store, take=post_room)) as client:
        assert send(client).json() == {"status": "accepted"}
        threading.Timer(0.2, post_room.gate.set).start()

    assert len(post_room.given) == 1


def test_more_than_may_wait_is_refused() -> None:
    gate = threading.Event()
    intake = Intake(lambda *_a, **_k: gate.wait(10) and "stored", waiting_max=100)  # type: ignore[arg-type]
    try:
        first = intake.hand_in("1", "issues", b'"' + b"x" * 60 + b'"')
        with pytest.raises(BusyError):
            intake.hand_in("2", "issues", b'"' + b"x" * 60 + b'"')
        gate.set()
        first.result(10)
        intake.hand_in("3", "issues", b'"' + b"x" * 60 + b'"').result(10)
    finally:
        gate.set()
        intake.close()


def test_the_secret_is_never_shown(
    desk: TestClient, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    send(desk)
    send(desk, x_hub_signature_256=sign(b"x"))
    output = capsys.readouterr()
    page = (
        output.out
        + output.err
        + repr(Settings(webhook_secret=SECRET, _env_file=None))
        + str(desk.app.state.settings)
    )  # type: ignore[call-arg,attr-defined]

    assert SECRET not in page
