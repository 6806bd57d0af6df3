"""What the first page tells: what is reported again, what is new, what the newest release changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.knowledge.home import MENTIONS_MIN, NEW, REPORTS_MIN, Home, home
from app.store.engine.connect import upsert
from app.store.session import Store
from app.store.tables import metadata
from tests.knowledge.conftest import Keep
from tests.samples import REPO, a_pull, a_release, an_issue, fenced, marlin_log

HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
NOW = datetime(2026, 6, 3, 12, tzinfo=UTC)


def a_failure(number: int, days_ago: float = 0, **fields: Any) -> Any:
    found = {
        "title": f"[Bug]: {number}",
        "body": fenced("It works with `--quantization awq`.", marlin_log()),
        **fields,
    }
    return an_issue(number, created_at=NOW - timedelta(days=days_ago), **found)


def gather(store: Store, repo_id: int, **clusters: tuple[int, ...]) -> None:
    """Put issues into clusters by hand; the first is the canonical one."""
    with store.unit_of_work() as session:
        upsert(
            session,
            metadata.tables["cluster"],
            [
                {"repo_id": repo_id, "id": key, "canonical": of[0], "text": f"text {key}"}
                for key, of in clusters.items()
            ],
            keys=("repo_id", "id"),
        )
        rows = [
            {"repo_id": repo_id, "number": n, "cluster_id": key, "signature_id": None, "traits": {}}
            for key, of in clusters.items()
            for n in of
        ]
        upsert(session, metadata.tables["cluster_member"], rows, keys=("repo_id", "number"))


def test_an_empty_base_has_no_news(store: Store, keep: Keep) -> None:
    assert home(store, REPO) == Home()
    keep(an_issue(1, created_at=None))
    assert home(store, REPO) == Home()


def test_new_are_the_failures_of_the_base_s_last_week_newest_first(store: Store, keep: Keep) -> None:
    keep(
        a_failure(1, 9),
        a_failure(2, 6, raw={"x_dates_estimated": True}),
        a_failure(3, 1),
        an_issue(4, title="[Feature]: a zebra", body="Please.", created_at=NOW),
    )
    found = home(store, REPO)

    assert [(one.number, one.has_remedy, one.dates_estimated) for one in found.new] == [
        (3, True, False),
        (2, True, True),
    ]
    assert found.new[0].error.line.startswith("ValueError: Weight output_size_per_partition")
    assert (found.new_total, found.since) == (2, NOW - timedelta(days=7))


def test_of_many_new_failures_some_are_told_and_all_are_counted(store: Store, keep: Keep) -> None:
    keep(*(a_failure(number) for number in range(1, NEW + 4)))
    found = home(store, REPO)

    assert (len(found.new), found.new_total) == (NEW, NEW + 3)


def test_failures_reported_more_than_once_lately_are_told_the_most_first(store: Store, keep: Keep) -> None:
    repo_id = keep(
        *(a_failure(n, days) for n, days in {1: 0, 2: 1, 3: 20, 4: 3, 5: 2, 6: 60, 7: 61, 8: 1}.items())
    )
    gather(store, repo_id, a=(6, 7, 8), b=(2, 5), c=(1, 3, 4))
    found = home(store, REPO)

    assert REPORTS_MIN == 2
    assert [(one.id, one.lately, one.this_week, one.size) for one in found.trending] == [
        ("c", 3, 2, 3),
        ("b", 2, 2, 2),
    ]
    assert found.trending[0].title == "[Bug]: 1"


def test_a_failure_that_grows_stands_first(store: Store, keep: Keep) -> None:
    monday = datetime(2026, 5, 25, tzinfo=UTC)
    old = [
        an_issue(n, body=fenced("x", marlin_log()), created_at=monday - timedelta(days=n))
        for n in range(1, 70)
    ]
    new = [
        an_issue(n, body=fenced("x", marlin_log()), created_at=monday + timedelta(days=1))
        for n in range(100, 112)
    ]
    many = [
        an_issue(n, body=fenced("x", marlin_log()), created_at=monday - timedelta(days=1))
        for n in range(200, 215)
    ]
    repo_id = keep(*old, *new, *many, a_failure(300))
    gather(store, repo_id, grows=tuple(range(100, 112)), steady=tuple(range(200, 215)))
    found = home(store, REPO)

    assert [one.id for one in found.trending if one.is_growing] == ["grows"]
    assert found.trending[0].id == "grows"
    assert "steady" in {one.id for one in found.trending}


def test_the_newest_release_tells_what_fails_in_it_and_what_it_fixed(store: Store, keep: Keep) -> None:
    keep(
        a_failure(1, body=fenced("vLLM version: 0.22.0", marlin_log())),
        a_failure(2, body="Fails since 0.22.0, worked in 0.21.0."),
        a_failure(3, 30, state="closed"),
        a_pull(10, body="Fixes #3", merged_at=NOW - timedelta(days=20)),
        a_release("v0.22.0", 10, published_at=NOW - timedelta(days=5)),
        a_release("v0.21.0", published_at=NOW - timedelta(days=40)),
    )
    found = home(store, REPO).release

    assert found
    assert (found.version, found.is_release) == ("0.22.0", True)
    assert {1} <= {one.number for one in found.failing}
    assert [(one.number, one.fix.pr) for one in found.fixed] == [(3, "#10")]


def test_without_a_release_the_newest_version_that_several_issues_name_stands_for_it(
    store: Store, keep: Keep
) -> None:
    assert MENTIONS_MIN == 3
    keep(
        *(a_failure(n, body=fenced("vLLM version: 0.22.0", marlin_log())) for n in range(1, 4)),
        a_failure(9, body=fenced("vLLM version: 0.99.0", marlin_log())),
    )
    found = home(store, REPO).release

    assert found
    assert (found.version, found.is_release, found.failing_total, found.fixed) == ("0.22.0", False, 3, ())


def test_secrets_are_masked(store: Store, keep: Keep) -> None:
    repo_id = keep(
        *(
            a_failure(n, title=f"[Bug]: {HUB}", body=fenced(HUB, marlin_log().replace("Weight", HUB)))
            for n in (1, 2)
        )
    )
    gather(store, repo_id, a=(1, 2))

    assert HUB not in home(store, REPO).model_dump_json()


@pytest.mark.parametrize("repo", ["other/thing", "nobody/nothing"])
def test_another_repository_has_its_own_news(store: Store, keep: Keep, repo: str) -> None:
    keep(a_failure(1))

    assert home(store, repo) == Home()
