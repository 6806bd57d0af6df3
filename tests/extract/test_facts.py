"""One sentence of an issue, made of its facts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.extract.facts import (
    MAX_SUMMARY_CHARS,
    SENTENCE_CHARS,
    ErrorFact,
    Facts,
    StatedChange,
    Workaround,
    summarise,
)

FACTS = Facts(
    number=1,
    is_failure=True,
    failure_kind="crash",
    gpus=("H100", "A100", "L4"),
    models=("org/m-7b", "org/m-9b"),
    versions={"vllm": "0.9.1"},
    error=ErrorFact(type="KeyError", message="'x'", frame="linear.py:load"),
)
HELP = Workaround(action="--enforce-eager", command="--enforce-eager", kind="flag", outcome="works")


def test_it_tells_what_fails_and_where() -> None:
    assert (
        summarise(FACTS)
        == "Crashes with KeyError: 'x' at linear.py:load on H100, A100 with org/m-7b in vLLM 0.9.1."
    )


def test_it_tells_the_first_remedy_that_works() -> None:
    vain = HELP.model_copy(update={"action": "reinstall", "outcome": "fails"})
    facts = FACTS.model_copy(update={"workarounds": (vain, HELP)})

    assert summarise(facts).endswith("in vLLM 0.9.1. Helps: --enforce-eager.")


def test_a_remedy_that_cannot_be_typed_is_left_to_the_sentence_that_states_it() -> None:
    words = HELP.model_copy(update={"action": "offline mode", "command": None})
    facts = FACTS.model_copy(update={"workarounds": (words, HELP)})

    assert summarise(facts).endswith("Helps: --enforce-eager.")
    assert summarise(FACTS.model_copy(update={"workarounds": (words,)})) == summarise(FACTS)


def test_no_failure_has_no_summary() -> None:
    assert summarise(Facts(number=1)) == ""


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("hang", "Hangs."),
        ("oom", "Runs out of memory."),
        ("wrong_output", "Gives wrong output."),
        ("install", "Does not install."),
        ("other", "Fails."),
    ],
)
def test_without_an_error_the_kind_is_told(kind: str, wanted: str) -> None:
    assert summarise(Facts(number=1, is_failure=True, failure_kind=kind)) == wanted  # type: ignore[arg-type]


@given(st.text(max_size=600), st.text(max_size=600), st.text(max_size=600))
def test_it_is_never_too_long(message: str, model: str, action: str) -> None:
    facts = FACTS.model_copy(
        update={
            "error": ErrorFact(type="KeyError", message=message),
            "models": (model,),
            "workarounds": (HELP.model_copy(update={"action": action}),),
        }
    )
    assert len(summarise(facts)) <= MAX_SUMMARY_CHARS


def test_a_shape_takes_what_another_has_under_its_names() -> None:
    tried = Workaround(action="--enforce-eager", kind="flag", outcome="works", source="comment:1")

    assert Workaround.based_on(tried, outcome="fails", source="body") == Workaround(
        action="--enforce-eager", kind="flag", outcome="fails"
    )


def test_an_action_is_shown_within_its_sentence_without_markup() -> None:
    change = StatedChange(action="`level 1`")

    assert change.within("### Note With **level 2**  it is wrong, `level 1` is fine.") == (
        "Note With level 2 it is wrong, ",
        "level 1",
        " is fine.",
    )
    assert change.within("* See [the `notes`](https://example.org/a): `level 1`") == (
        "See the notes: ",
        "level 1",
        "",
    )
    assert change.within("another sentence") == ("", "level 1", "")


@example("", "`", "")
@given(st.text(max_size=600), st.text(min_size=1, max_size=100), st.text(max_size=600))
def test_a_sentence_is_cut_around_its_action(before: str, action: str, after: str) -> None:
    shown = StatedChange(action=action).within(before + action + after)

    assert sum(map(len, shown)) <= max(SENTENCE_CHARS, len(action)) + len("……")
