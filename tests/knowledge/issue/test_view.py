"""What belongs to an issue, as its page shows it.

What a visitor sees of one issue.

One stored issue as it is shown.
"""

from __future__ import annotations

import pytest

from app.errors import NotFoundError
from app.extract.facts import ErrorFact, Facts, FailureKind, summarise
from app.extract.redact import BLOCK
from app.knowledge.issue.relations import Graph, issue_graph
from app.knowledge.issue.stored import load_issue
from app.knowledge.issue.view import ALIKE_MAX, ClusterLine, find_findings, load_issue_page, view_issue
from app.knowledge.issue.votes import VoteCount, vote
from app.store.engine.connect import upsert
from app.store.session import Store
from app.store.tables import metadata
from tests.knowledge.conftest import Keep
from tests.samples import LATE, REPO, a_comment, a_pull, a_release, an_issue, fenced, marlin_log
from tests.starter_base import put_cards


def _graph(store: Store) -> Graph:
    with store.reading() as session:
        stored = load_issue(session, REPO, 1)
        return issue_graph(session, stored, stored.sources(), alike_max=ALIKE_MAX)


def test_pull_requests_have_state_and_release(store: Store, keep: Keep) -> None:
    keep(
        an_issue(1, body="This regression was introduced by #1010.\n\nAnother one: #2002."),
        an_issue(2002, title="[Bug]: another"),
        a_pull(1010, title="Change the default", merged_at=LATE),
        a_pull(11, title="Undo", body="Fixes #1"),
        a_comment(7, 1, "Same as #3."),
        a_release("v0.9.2", 1010),
    )
    graph = _graph(store)
    found = {graph.other_end(edge).number: (edge.kind, graph.other_end(edge).state) for edge in graph.edges}

    assert graph.nodes[0].number == 1
    assert found[11] == ("fixes", "open")
    assert found[1010][1] == "merged"
    assert found[2002] == ("mentions", "open")
    assert next(node for node in graph.nodes if node.number == 1010).released_in == "0.9.2"


def test_only_a_few_similar_issues_are_shown(store: Store, keep: Keep) -> None:
    keep(
        *(
            an_issue(n, title="[Bug]: marlin refuses the weight", body=fenced("x", marlin_log()))
            for n in range(1, ALIKE_MAX + 4)
        )
    )
    alike = [edge for edge in _graph(store).edges if edge.basis == "likeness"]

    assert len(alike) == ALIKE_MAX


ANNA = "192.0.2.7"


def test_the_issue_is_the_one_that_programs_get(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body="Another one: #2002."), an_issue(2002))
    seen = load_issue_page(store, REPO, 1, vllm_version="0.9.1")

    assert seen.issue == view_issue(store, REPO, 1, vllm_version="0.9.1")
    assert [node.number for node in seen.graph.nodes] == [1, 2002]


def test_the_votes_are_those_of_all(store: Store, keep: Keep) -> None:
    keep(an_issue(1))
    vote(store, REPO, 1, "works", 1, client=ANNA)
    vote(store, REPO, 1, "works", -1, client="192.0.2.8")
    seen = load_issue_page(store, REPO, 1)

    assert seen.issue.votes["works"] == VoteCount(up=1, down=1)
    assert seen.remedy_votes == {}


@pytest.mark.parametrize(("repo", "number"), [(REPO, 77), ("nobody/nothing", 1)])
def test_what_is_not_stored_is_named(store: Store, keep: Keep, repo: str, number: int) -> None:
    keep(an_issue(1))
    with pytest.raises(NotFoundError, match=f"{repo}#{number} is not stored"):
        load_issue_page(store, repo, number)


HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
KEY = "correct-horse-battery"


def test_github_s_fields_and_ours_are_shown(store: Store, keep: Keep) -> None:
    keep(
        an_issue(
            1,
            author="someone",
            labels=("bug",),
            body=fenced("With `--quantization awq` it works.", marlin_log()),
        )
    )
    view = view_issue(store, REPO, 1)

    assert (view.repo, view.number, view.author, view.labels, view.origin) == (
        REPO,
        1,
        "someone",
        ("bug",),
        "github",
    )
    assert view.facts is not None
    assert [item.action for item in view.facts.workarounds] == ["--quantization awq"]


def test_quotes_equal_their_spans_in_what_is_shown(store: Store, keep: Keep) -> None:
    body = fenced(
        f"I set api_key='{KEY}' and `HF_TOKEN={HUB}`.", marlin_log(start=f"model='org/m-7b', token {HUB}\n")
    )
    keep(an_issue(1, title=f"[Bug]: ValueError: {HUB} fails", body=body))
    view = view_issue(store, REPO, 1)
    page = {"title": view.title, "body": view.body}

    assert view.facts is not None
    assert view.facts.evidence != ()
    assert [
        item for item in view.facts.evidence if page[item.source][item.start : item.end] != item.quote
    ] == []


def test_no_secret_is_shown_in_any_field(store: Store, keep: Keep) -> None:
    body = fenced(
        f"`HF_TOKEN={HUB} vllm serve org/m-7b --api-key {KEY}` fails, but `HF_TOKEN={HUB}` with `--enforce-eager` works.",
        f"Caused by the token {HUB}, I think.",
        marlin_log().replace("Weight", f"{HUB} Weight"),
    )
    keep(
        an_issue(1, title=f"[Bug]: {HUB}", body=body),
        a_comment(5, 1, f"`export HF_TOKEN={HUB}` works for me."),
    )
    found = view_issue(store, REPO, 1).model_dump_json()

    assert (HUB in found, KEY in found) == (False, False)
    assert BLOCK * len(HUB) in found


def test_the_fix_is_seen_from_a_version(store: Store, keep: Keep) -> None:
    keep(an_issue(1), a_pull(7, body="Fixes #1", merged_at=LATE), a_release("v0.9.2", 7))

    assert [
        view_issue(store, REPO, 1, vllm_version=version).fix.for_you for version in (None, "0.9.1", "0.9.2")
    ] == [None, "upgrade", "already_included"]


def test_a_card_s_log_is_shown_while_only_the_card_tells(store: Store) -> None:
    put_cards(store)
    view = view_issue(store, REPO, 39288)

    assert view.origin == "card"
    assert "custom_all_reduce.cuh:455" in view.body


def test_github_s_text_is_shown_once_it_is_there(store: Store, keep: Keep) -> None:
    put_cards(store)
    keep(an_issue(39288, body="GitHub's text"))
    view = view_issue(store, REPO, 39288)

    assert (view.origin, view.body) == ("github", "GitHub's text")
    assert view.facts is not None
    assert [item.action for item in view.facts.workarounds] == ["--moe-backend triton"]


@pytest.mark.parametrize(("repo", "number"), [(REPO, 404), ("no/body", 1)])
def test_what_is_not_stored_is_named_issue_view(store: Store, keep: Keep, repo: str, number: int) -> None:
    keep(an_issue(1))

    with pytest.raises(NotFoundError, match=f"{repo}#{number} is not stored"):
        view_issue(store, repo, number)


def test_participants_are_counted_where_all_comments_and_writers_are_known(store: Store, keep: Keep) -> None:
    keep(
        an_issue(1, author="anna", comments=2),
        a_comment(5, 1, "Me too.", author="bert"),
        a_comment(6, 1, "Thanks.", author="anna"),
        an_issue(2, author="anna", comments=3),
        a_comment(7, 2, "One of three.", author="bert"),
        an_issue(3, author=None),
    )

    assert [view_issue(store, REPO, number).participants for number in (1, 2, 3)] == [2, None, None]


def test_estimated_dates_are_said(store: Store, keep: Keep) -> None:
    keep(an_issue(1, raw={"x_dates_estimated": True}), an_issue(2))

    assert [view_issue(store, REPO, number).dates_estimated for number in (1, 2)] == [True, False]


def test_an_issue_names_the_failure_it_reports_and_how_many_do(store: Store, keep: Keep) -> None:
    repo_id = keep(an_issue(1), an_issue(2), an_issue(3))
    with store.unit_of_work() as session:
        cluster = {"repo_id": repo_id, "id": "s1-x", "canonical": 2, "text": "ValueError | no"}
        upsert(session, metadata.tables["cluster"], [cluster], keys=("repo_id", "id"))
        rows = [
            {"repo_id": repo_id, "number": n, "cluster_id": "s1-x", "signature_id": None, "traits": {}}
            for n in (1, 2)
        ]
        upsert(session, metadata.tables["cluster_member"], rows, keys=("repo_id", "number"))

    assert view_issue(store, REPO, 1).cluster == ClusterLine(
        id="s1-x", text="ValueError | no", canonical=2, size=2
    )


def facts(kind: FailureKind) -> Facts:
    return Facts(
        number=1, is_failure=True, failure_kind=kind, error=ErrorFact(type="CUDA error", message="x")
    )


@pytest.mark.parametrize(
    ("line", "metric", "change"),
    [
        ("TTFT P99: +40% (static scale) to +52% (scale off)", "TTFT P99", "+40% to +52%"),
        ("Output throughput is 18 % lower than with the release before.", "throughput", "18 %"),
        ("Since then latency is 2.5x slower on all prompts.", "latency", "2.5x slower"),
        ("- TPOT mean: −3.1 %", "TPOT mean", "−3.1 %"),
        ("LAT P50−3.9 %−2.0 %", "LAT P50", "−3.9 %"),
    ],
)
def test_a_slowdown_has_its_figures(line: str, metric: str, change: str) -> None:
    (found,) = find_findings(f"It is slow.\n{line}\nThat is all.", facts("slowdown")).measurements
    assert (found.metric, found.change) == (metric, change)
    assert found.quote in line


@pytest.mark.parametrize(
    "line", ["Throughput on 2x A30 is fine.", "TTFT is high.", "90% of the memory is used.", "latency 5 ms"]
)
def test_what_is_no_change_of_a_metric_is_no_figure(line: str) -> None:
    assert find_findings(line, facts("slowdown")).measurements == ()


def test_only_a_slowdown_has_figures_and_its_summary_names_no_error() -> None:
    assert find_findings("TTFT P99: +40%", facts("crash")).measurements == ()
    assert "CUDA error" not in summarise(facts("slowdown"))
    assert "CUDA error" in summarise(facts("crash"))


@pytest.mark.parametrize(
    ("line", "fixed_on", "not_on"),
    [
        (
            "The fix of #123 resolved it on B200NVL and GB300, but H100 still crashes.",
            ("B200", "GB300"),
            ("H100",),
        ),
        ("Patched in 0.19.1: it works on A100; however the MI300X remains broken.", (), ()),
        ("The patch fixed it on A100, however the L40S remains broken.", ("A100",), ("L40S",)),
        ("It works on A100 but fails on H100.", (), ()),
        ("The fix did not help: it resolved nothing on A100, but H100 fails too.", (), ()),
    ],
)
def test_a_fix_may_help_on_some_cards_only(
    line: str, fixed_on: tuple[str, ...], not_on: tuple[str, ...]
) -> None:
    found = find_findings(line, facts("crash")).partial_fix
    assert (found.fixed_on if found else ()) == fixed_on
    assert (found.not_on if found else ()) == not_on


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        (
            "It hangs.\n### Suggested fix\nClose the socket before `join()` waits.\n### Logs\nno",
            "Close the socket before `join()` waits.",
        ),
        (
            "It hangs. **Proposed Fix:** Pass the device on to the loader: ```python x```",
            "Pass the device on to the loader",
        ),
        ("The suggested fix did not help, it hangs all the same as before.", None),
        ("### Suggested fix\nnone", None),
    ],
)
def test_what_a_report_proposes_is_quoted(text: str, proposal: str | None) -> None:
    assert find_findings(text, facts("hang")).proposal == proposal
