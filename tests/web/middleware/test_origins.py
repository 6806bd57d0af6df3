"""Pages of other origins may read and diagnose; what changes something is closed to them."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.config import Settings
from app.main import create_app
from app.store.session import Store
from tests.rows import over_rows

ORIGIN = {"origin": "https://bot.example"}
OPEN = [
    ("GET", "/api/v1/issues/39288"),
    ("HEAD", "/api/v1/issues/39288"),
    ("GET", "/openapi.json"),
    ("GET", "/llms.txt"),
    ("POST", "/api/v1/diagnose"),
    ("GET", "/api/v1/nowhere"),
]
CLOSED = [
    ("GET", "/api/v1/judgements"),
    ("POST", "/api/v1/judgements"),
    ("POST", "/api/v1/issues/39288/votes"),
    ("POST", "/webhooks/github"),
    ("GET", "/issues/39288"),
    ("POST", "/diagnose"),
    ("POST", "/mcp"),
    ("GET", "/metrics"),
]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"public_hosts": ("testserver",)})


@pytest.mark.parametrize(
    ("public", "chosen", "is_open"),
    [
        ((), None, False),
        ((), True, True),
        (("triage.example.org",), None, True),
        (("triage.example.org",), False, False),
    ],
)
def test_other_origins_read_a_public_service_only(
    settings: Settings, store: Store, public: tuple[str, ...], chosen: bool | None, is_open: bool
) -> None:
    asked = settings.model_copy(update={"public_hosts": public, "cross_origin": chosen})
    with TestClient(create_app(asked, store)) as client:
        headers = client.get("/api/v1/regressions", headers=ORIGIN).headers

    assert ("access-control-allow-origin" in headers) is is_open


@over_rows(("method", "path"), OPEN)
def test_every_origin_may_read_without_credentials(client: TestClient, method: str, path: str) -> None:
    headers = client.request(method, path, headers=ORIGIN).headers

    assert headers["access-control-allow-origin"] == "*"
    assert "ETag" in headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in headers


@over_rows(("method", "path"), CLOSED)
def test_the_rest_says_nothing_to_other_origins(client: TestClient, method: str, path: str) -> None:
    assert "access-control-allow-origin" not in client.request(method, path, headers=ORIGIN).headers


@pytest.mark.parametrize(
    ("path", "asked", "allowed"),
    [
        ("/api/v1/diagnose", "POST", "POST"),
        ("/api/v1/issues/1", "GET", "GET, HEAD"),
        ("/api/v1/issues/1/votes", "POST", "GET, HEAD"),
        ("/openapi.json", "GET", "GET, HEAD"),
    ],
)
def test_a_preflight_names_what_is_open(client: TestClient, path: str, asked: str, allowed: str) -> None:
    headers = {
        **ORIGIN,
        "access-control-request-method": asked,
        "access-control-request-headers": "content-type",
    }

    answer = client.options(path, headers=headers)

    assert answer.status_code == (200 if asked in allowed else 400)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == allowed
    assert "X-API-Key" in answer.headers["access-control-allow-headers"]


@pytest.mark.parametrize("path", ["/api/v1/judgements", "/webhooks/github", "/issues/1", "/mcp"])
def test_a_preflight_of_a_closed_route_allows_nothing(client: TestClient, path: str) -> None:
    answer = client.options(path, headers={**ORIGIN, "access-control-request-method": "POST"})

    assert answer.status_code in {404, 405}
    assert not [name for name in answer.headers if name.startswith("access-control-")]
