"""Names that fields had before release 0.1.0 answer beside their successors, and are marked as deprecated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from tests.served import CRASH_NUMBER, starter_settings

FORMER = {
    "kind": {
        "ClusterDetail",
        "ClusterSummary",
        "FixNews",
        "RegressionNews",
        "UnremediedNews",
    },
    "remedy": {"ClusterNews", "KnownIssue", "ListedIssue", "RegressionItem"},
    "remedies": {"Report"},
    "vllm_version": {"ListedIssue"},
    "error_type": {"ListedIssue"},
}
"""By former name the shapes that have it still; a row goes with the release that drops the name."""


def _action(remedies: list[Any]) -> str | None:
    return remedies[0]["action"] if remedies else None


SUCCESSORS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "kind": ("failure_kind", str, str),
    "remedy": ("workarounds", lambda old: old and old["action"], _action),
    "remedies": ("workarounds", _action, _action),
    "vllm_version": ("versions", lambda old: old, lambda new: new["vllm"]),
    "error_type": ("error", lambda old: old, lambda new: new and new["type"]),
}
"""By former name its successor, and what of both must be equal."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with TestClient(create_app(starter_settings(tmp_path_factory.mktemp("former")))) as opened:
        yield opened


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def test_the_description_marks_each_former_name_beside_its_successor(client: TestClient) -> None:
    marked: dict[str, set[str]] = {}
    for name, shape in client.get("/openapi.json").json()["components"]["schemas"].items():
        for field, described in shape.get("properties", {}).items():
            if described.get("deprecated"):
                marked.setdefault(field, set()).add(name)
                assert SUCCESSORS[field][0] in shape["properties"], name

    assert marked == FORMER


def test_former_names_answer_the_same_as_their_successors(client: TestClient) -> None:
    met: set[str] = set()
    first = client.get("/api/v1/signatures?limit=1").json()["items"][0]["id"]
    for path in (
        "issues?limit=100",
        "signatures?limit=100",
        f"signatures/{first}",
        f"issues/{CRASH_NUMBER}/report",
        "regressions",
        "versions/0.19.0/known-issues",
        "digest",
    ):
        answer = client.get(f"/api/v1/{path}")
        assert answer.status_code == 200, path
        for found in _objects(answer.json()):
            for former, (now, old_part, new_part) in SUCCESSORS.items():
                if former in found and now in found:
                    assert old_part(found[former]) == new_part(found[now]), (path, former)
                    met |= {former} if found[former] else set()

    assert met == set(SUCCESSORS)


def test_the_former_filter_and_facet_count_the_same(client: TestClient) -> None:
    old, new = (
        client.get(f"/api/v1/issues?{name}=crash&facets=true").json() for name in ("kind", "failure_kind")
    )
    assert old["total"] == new["total"] > 0
    assert old["facets"]["kind"] == old["facets"]["failure_kind"]
