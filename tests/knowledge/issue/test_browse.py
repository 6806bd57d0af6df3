"""Lists of issues by words and facts, a part at a time, with counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app.errors import InputError
from app.knowledge.issue.browse import FACET_VALUES, IssuePage, IssueQuery, browse
from app.store.session import Store
from tests.conftest import ENGINES
from tests.knowledge.conftest import Keep, keep_in
from tests.rows import over_rows
from tests.samples import EARLY, LATE, REPO, a_pull, an_issue, fenced, marlin_log, rope_log

HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
RUN = "GPU: NVIDIA H100 80GB HBM3\nvLLM version: 0.9.1\n\n`vllm serve Qwen/Qwen3-32B --quantization fp8`"


def found(store: Store, **query: Any) -> list[int]:
    page = browse(store, REPO, IssueQuery(**query))
    assert page.total == len(page.items)
    return [issue.number for issue in page.items]


@pytest.fixture(scope="module", params=ENGINES)
def base(request: pytest.FixtureRequest, new_store: Callable[[str], Store]) -> Store:
    """Four issues and a pull request, to be read only."""
    store = new_store(request.param)
    keep_in(
        store,
        an_issue(
            1,
            title="[Bug]: marlin refuses the weight",
            labels=("bug",),
            body=fenced(RUN, "It works with `--quantization awq`.", marlin_log()),
        ),
        an_issue(
            2,
            title="[Bug]: rope",
            state="closed",
            body=fenced("GPU: NVIDIA A100-SXM4-80GB\nvLLM version: 0.9.2", rope_log()),
            created_at=LATE,
        ),
        an_issue(
            3,
            title="[Bug]: slower since 0.9.2 on L40S",
            body="It regressed: 0.9.1 works, 0.9.2 does not. GPU: NVIDIA L40S",
        ),
        an_issue(4, title="[Feature]: a zebra", body="Please.", labels=("feature request",)),
        a_pull(5),
    )
    return store


@over_rows(
    ("query", "numbers"),
    [
        ({}, [4, 3, 2, 1]),
        ({"gpu": "H100"}, [1]),
        ({"gpu": "nvidia h100 80gb hbm3"}, [1]),
        ({"arch": "hopper"}, [1]),
        ({"arch": "ada"}, [3]),
        ({"model": "qwen"}, [1]),
        ({"model": "qwen3"}, [1]),
        ({"model": "Qwen3-32B"}, [1]),
        ({"model": "Qwen/Qwen3-32B"}, [1]),
        ({"model": "Qwen/Qwen3"}, []),
        ({"backend": "FP8"}, [1]),
        ({"error_type": "keyerror"}, [2]),
        ({"vllm_version": "v0.9.1"}, [1]),
        ({"state": "closed"}, [2]),
        ({"label": "BUG"}, [1]),
        ({"has_workaround": True}, [1]),
        ({"has_workaround": False}, [4, 3, 2]),
        ({"since": LATE}, [2]),
        ({"q": "zebra"}, [4]),
        ({"q": "#2"}, [2]),
        ({"q": f"https://github.com/{REPO}/issues/2"}, [2]),
        ({"q": "#5"}, []),
        ({"q": "marlin", "state": "closed"}, []),
        ({"q": "0.9"}, []),
        ({"q": "? !"}, []),
    ],
)
def test_every_filter_must_hold(base: Store, query: dict[str, Any], numbers: list[int]) -> None:
    assert found(base, **query) == numbers


@over_rows("name", ["arch", "model", "backend", "error_type", "label", "q"])
@over_rows("value", ["zzz", "'; DROP TABLE issue; --", "%", "\x00", "🦙" * 40])
def test_a_value_that_stands_nowhere_finds_nothing_and_is_no_error(
    base: Store, name: str, value: str
) -> None:
    assert found(base, **{name: value}) == []


def test_a_gpu_that_none_is_is_refused_with_the_nearest(base: Store) -> None:
    with pytest.raises(InputError, match="H1000 is no known GPU; the nearest is H100"):
        found(base, gpu="H1000")


def test_a_regression_is_found_by_its_range(base: Store) -> None:
    assert found(base, has_regression=True) == [3]
    assert 3 not in found(base, has_regression=False)


def test_an_unknown_repository_is_empty(store: Store) -> None:
    found = browse(store, REPO, IssueQuery(), facets=True)

    assert not any(found.facets.values())
    assert found.model_copy(update={"facets": {}}) == IssuePage(sort="newest")


def test_counts_say_what_each_value_would_leave_beside_the_other_filters(base: Store) -> None:
    facets = {
        name: {value.value: value.count for value in values}
        for name, values in browse(base, REPO, IssueQuery(state="open"), facets=True).facets.items()
    }

    assert facets["state"] == {"open": 3, "closed": 1}
    assert facets["gpu"] == {"H100": 1, "L40S": 1}
    assert facets["arch"] == {"Ada Lovelace": 1, "Hopper": 1}
    assert "cuda" not in facets["backend"]
    assert facets["model"] == {"qwen3": 1}
    assert facets["error_type"] == {"ValueError": 1}
    assert facets["has_workaround"] == {"true": 1}


def test_each_count_is_what_its_filter_finds(base: Store) -> None:
    for name, values in browse(base, REPO, IssueQuery(), facets=True).facets.items():
        for value in values:
            asked: Any = value.value == "true" if name.startswith("has_") else value.value
            assert len(found(base, **{name: asked})) == value.count, (name, value)


def test_a_facet_tells_its_most_frequent_values_only(store: Store, keep: Keep) -> None:
    keep(
        *(an_issue(n, body=f"vLLM version: 0.{n}.0") for n in range(1, FACET_VALUES + 3)),
        an_issue(99, body="vLLM version: 0.3.0"),
    )
    facets = browse(store, REPO, IssueQuery(), facets=True).facets

    assert len(facets["vllm_version"]) == FACET_VALUES
    assert (facets["vllm_version"][0].value, facets["vllm_version"][0].count) == ("0.3.0", 2)


def parts(store: Store, query: IssueQuery, limit: int) -> list[IssuePage]:
    pages = [browse(store, REPO, query, limit=limit)]
    while pages[-1].next is not None:
        pages.append(browse(store, REPO, query, after=pages[-1].next, limit=limit))
    return pages


@pytest.mark.parametrize(
    "query", [IssueQuery(), IssueQuery(q="marlin"), IssueQuery(q="marlin", sort="newest")]
)
def test_the_parts_of_a_list_hold_each_issue_once_and_lead_back(
    store: Store, keep: Keep, query: IssueQuery
) -> None:
    keep(*(an_issue(n, body=f"marlin {'kernel ' * (n % 3)}") for n in range(1, 8)))
    pages = parts(store, query, 3)
    numbers = [issue.number for page in pages for issue in page.items]

    assert sorted(numbers) == list(range(1, 8))
    assert [page.start for page in pages] == [0, 3, 6]
    assert [page.previous for page in pages] == [None, 0, numbers[2]]


def test_an_issue_stored_meanwhile_moves_nothing(store: Store, keep: Keep) -> None:
    keep(*(an_issue(n) for n in range(1, 6)))
    first = browse(store, REPO, IssueQuery(), limit=2)
    keep(an_issue(6), an_issue(7))

    assert [issue.number for issue in browse(store, REPO, IssueQuery(), after=first.next, limit=2).items] == [
        3,
        2,
    ]


def test_a_place_that_is_gone_is_passed_over_or_said(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body="marlin"), an_issue(3, body="marlin"))

    assert [issue.number for issue in browse(store, REPO, IssueQuery(), after=2).items] == [1]
    with pytest.raises(InputError, match="Begin without it"):
        browse(store, REPO, IssueQuery(q="marlin"), after=2)


def test_an_issue_is_told_with_its_error_remedy_and_fix_state(base: Store) -> None:
    one = browse(base, REPO, IssueQuery(gpu="H100")).items[0]
    wish = browse(base, REPO, IssueQuery(q="zebra")).items[0]

    assert (one.error_type, one.vllm_version, one.models, one.labels) == (
        "ValueError",
        "0.9.1",
        ("Qwen/Qwen3-32B",),
        ("bug",),
    )
    assert one.error.line.startswith("ValueError: Weight output_size_per_partition")
    assert one.remedy
    assert (one.remedy.action, one.remedy.outcome) == ("--quantization awq", "works")
    assert one.fix
    assert one.fix.state == "not_fixed"
    assert (wish.failure_kind, wish.fix, wish.remedy, wish.error) == ("none", None, None, None)


def test_words_left_out_are_told(base: Store) -> None:
    assert browse(base, REPO, IssueQuery(q="zebra qqqqq")).ignored_words == ("qqqqq",)
    assert browse(base, REPO, IssueQuery(q="a 1")).ignored_words == ("a", "1")


def test_estimated_dates_are_said(store: Store, keep: Keep) -> None:
    keep(an_issue(1, raw={"x_dates_estimated": True}), an_issue(2, created_at=EARLY + timedelta(days=1)))

    assert [issue.dates_estimated for issue in browse(store, REPO, IssueQuery()).items] == [False, True]


def test_secrets_are_masked(store: Store, keep: Keep) -> None:
    keep(
        an_issue(
            1, title=f"[Bug]: {HUB}", labels=(HUB,), body=fenced("See.", marlin_log().replace("Weight", HUB))
        )
    )

    assert HUB not in browse(store, REPO, IssueQuery(), facets=True).model_dump_json()
