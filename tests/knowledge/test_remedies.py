"""Workarounds of several issues as one list."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.facts import Conditions, Facts, Fix, Workaround, summarise
from app.knowledge.markdown import render_markdown
from app.knowledge.remedies import (
    OUTCOME_RANK,
    Remedy,
    action_key,
    for_version,
    rank_actions,
    rank_remedies,
    remedies_of,
)
from tests.samples import REPO

URL = f"https://github.com/{REPO}/issues/1"
EAGER = Workaround(action="--enforce-eager", kind="flag", outcome="works")


def a_remedy(action: str = "--enforce-eager", outcome: str = "works", number: int = 1, **more) -> Remedy:
    return Remedy(action=action, kind="flag", outcome=outcome, repo=REPO, number=number, url=URL, **more)


def actions(*remedies: Remedy) -> list[str]:
    return [item.action for item in rank_remedies(remedies)]


def test_what_works_comes_before_what_helps_partly_before_what_fails() -> None:
    assert actions(a_remedy("a", "fails"), a_remedy("b", "partial"), a_remedy("c")) == ["c", "b", "a"]


def test_what_others_confirmed_comes_before_what_they_refuted() -> None:
    assert actions(a_remedy("a", refuted_by=1), a_remedy("b"), a_remedy("c", confirmed_by=2)) == [
        "c",
        "b",
        "a",
    ]


def test_a_maintainer_s_word_comes_before_the_reporter_s_before_others() -> None:
    assert actions(a_remedy("a", by="other"), a_remedy("b"), a_remedy("c", by="maintainer")) == [
        "c",
        "b",
        "a",
    ]


def test_between_equals_the_likelier_issue_s_comes_first() -> None:
    assert actions(a_remedy("a", number=2), a_remedy("b", number=1)) == ["a", "b"]


@pytest.mark.parametrize("again", ["--enforce-eager", "--ENFORCE-EAGER", "  --enforce-eager "])
def test_a_second_mention_of_an_action_is_dropped(again: str) -> None:
    assert [item.number for item in rank_remedies([a_remedy(number=1), a_remedy(again, number=2)])] == [1]


def test_of_two_mentions_the_better_outcome_stays() -> None:
    assert [item.outcome for item in rank_remedies([a_remedy(outcome="fails"), a_remedy(number=2)])] == [
        "works"
    ]


def test_an_issue_s_workarounds_keep_what_was_said_of_them_and_their_source() -> None:
    known = EAGER.model_copy(
        update={"by": "maintainer", "confirmed_by": 2, "conditions": Conditions(gpus=("H100",))}
    )

    assert remedies_of(Facts(number=1, workarounds=(known,)), repo=REPO, url=URL) == (
        a_remedy(by="maintainer", confirmed_by=2, conditions=Conditions(gpus=("H100",))),
    )


def test_a_workaround_without_conditions_was_tried_on_the_issue_s_run() -> None:
    facts = Facts(
        number=1,
        workarounds=(EAGER,),
        gpus=("H100",),
        models=("org/m-7b",),
        versions={"vllm": "0.9.1", "torch": "2.7"},
        backends={"moe": ("TRITON",), "attention": ("FLASHINFER",)},
    )

    assert remedies_of(facts, repo=REPO, url=URL)[0].conditions == Conditions(
        versions=("0.9.1",), gpus=("H100",), models=("org/m-7b",), backends=("TRITON",)
    )


def test_an_issue_without_workarounds_has_no_remedies() -> None:
    assert remedies_of(Facts(number=1), repo=REPO, url=URL) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("--enforce-eager", "enforce_eager=True"),
        ("--max-num-seqs 8", "--max_num_seqs=8"),
        ("VLLM_USE_V1=0", "the V0 engine"),
    ],
)
def test_two_spellings_of_one_change_are_one_action(one: str, other: str) -> None:
    assert action_key(one) == action_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("--max-num-seqs 8", "--max-num-seqs 16"), ("VLLM_USE_V1=0", "VLLM_USE_V1=1"), ("a", "b")],
)
def test_another_value_is_another_action(one: str, other: str) -> None:
    assert action_key(one) != action_key(other)


def test_an_action_that_helped_in_more_issues_comes_first() -> None:
    found = rank_actions([a_remedy("a", number=1), a_remedy("b", number=2), a_remedy("b", number=3)])

    assert [(action.best.action, action.issues(fails=False)) for action in found] == [
        ("b", (2, 3)),
        ("a", (1,)),
    ]


def test_an_action_that_failed_elsewhere_comes_later() -> None:
    found = rank_actions([a_remedy("a", number=1), a_remedy("a", "fails", number=4), a_remedy("b", number=2)])

    assert [(action.best.action, action.issues(fails=True)) for action in found] == [("b", ()), ("a", (4,))]


def test_votes_and_reactions_count_for_the_telling_they_belong_to() -> None:
    answer = [a_remedy("a", number=1), a_remedy("b", number=2), a_remedy("c", number=3)]

    assert [found.best.action for found in rank_actions(answer, {(2, "b"): 3, (1, "a"): -2})] == [
        "b",
        "c",
        "a",
    ]


remedies = st.builds(
    a_remedy,
    st.sampled_from(["a", "b", "B", " c"]),
    st.sampled_from(list(OUTCOME_RANK)),
    st.integers(1, 9),
    by=st.sampled_from(["maintainer", "reporter", "other"]),
    confirmed_by=st.integers(0, 3),
    refuted_by=st.integers(0, 3),
)


@given(st.lists(remedies, max_size=12))
def test_every_action_stands_once_and_outcomes_descend(items: list[Remedy]) -> None:
    ranked = rank_remedies(items)
    outcomes = [OUTCOME_RANK[item.outcome] for item in ranked]

    assert {item.action.strip().lower() for item in ranked} == {item.action.strip().lower() for item in items}
    assert len({item.action.strip().lower() for item in ranked}) == len(ranked)
    assert outcomes == sorted(outcomes)


@pytest.mark.parametrize(
    ("action", "version", "gone"),
    [
        ("VLLM_USE_V1=0", "0.21.0", "VLLM_USE_V1"),
        ("VLLM_USE_V1=0", "0.9.1", None),
        ("VLLM_USE_V1=0", "0.1.dev3+g1234567", None),
        ("VLLM_USE_V1=0", None, None),
        ("--num_scheduler_steps 8", "0.11.2", "--num-scheduler-steps"),
        ("--no-enable-reasoning", "0.15.1", "--enable-reasoning"),
        ("--enforce-eager", "0.33.0", None),
    ],
)
def test_a_setting_that_the_caller_s_version_lacks_is_gone(
    action: str, version: str | None, gone: str | None
) -> None:
    assert for_version([a_remedy(action)], version)[0].gone == gone


def test_what_is_gone_is_quoted_behind_all_that_may_help() -> None:
    old = a_remedy("VLLM_USE_V1=0", command="VLLM_USE_V1=0 vllm serve m")
    found = for_version([old, a_remedy(outcome="partial"), a_remedy("x", "fails")], "0.21.0")
    assert [item.action for item in found] == ["--enforce-eager", "VLLM_USE_V1=0", "x"]
    assert found[1].command is None


def test_a_setting_to_leave_out_may_be_gone() -> None:
    assert for_version([a_remedy("VLLM_USE_V1=1", without=True)], "0.21.0")[0].gone is None


def test_what_is_left_out_reads_so_wherever_it_helps() -> None:
    left_out = a_remedy(without=True)
    assert (left_out.words, a_remedy().words) == ("leave out --enforce-eager", "--enforce-eager")
    assert a_remedy(command="--max-num-seqs 8").words == "--max-num-seqs 8"


def test_to_set_an_option_and_to_leave_it_out_are_two_actions() -> None:
    assert [item.without for item in rank_remedies([a_remedy(), a_remedy(without=True)])] == [False, True]


def test_a_summary_says_that_an_option_is_left_out() -> None:
    left_out = EAGER.model_copy(update={"without": True})
    assert summarise(Facts(number=1, is_failure=True, workarounds=(left_out,))).endswith(
        "Helps: leave out --enforce-eager."
    )


@pytest.mark.parametrize("template", ["tool_search.md", "tool_known.md"])
def test_a_tool_s_list_says_that_an_option_is_left_out(template: str) -> None:
    head = {
        "number": 1,
        "title": "t",
        "url": URL,
        "state": "open",
        "error": None,
        "fix": Fix(state="not_fixed"),
    }
    only_here = {"gpus": (), "models": (), "versions": {}, "standing": "open", "basis": "reported"}
    item = SimpleNamespace(**head, **only_here, workarounds=(a_remedy(without=True),))
    text = render_markdown(template, page=SimpleNamespace(items=[item], total=1, version="0.21.0"))
    assert "helps: leave out `--enforce-eager`" in text
