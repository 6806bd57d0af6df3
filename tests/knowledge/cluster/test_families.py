"""Failures whose error says the same are one family, whatever their clusters."""

from __future__ import annotations

import pytest

from app.extract.facts import ErrorFact, Facts, FailureKind
from app.knowledge.cluster.families import families, family_of, family_of_error
from app.knowledge.indexing.derive import derive_issues
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.samples import REPO, an_issue, fenced

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB."


def an_error(line: str, frame: str | None = None) -> ErrorFact:
    kind, _, message = line.partition(": ")
    return ErrorFact(type=kind or None, message=message, frame=frame)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (OUT_OF_MEMORY.format(2), OUT_OF_MEMORY.format("17.50")),
        (
            "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
            "RuntimeError: operator _C::machete_gemm does not exist",
        ),
        ("KeyError: 'layers.0.mlp.w2_weight'", "KeyError: 'model.layers.31.self_attn.q_proj.weight'"),
        (
            "ValueError: could not broadcast input array from shape (513,) into shape (512,)",
            "ValueError: could not broadcast input array from shape (9,) into shape (7,)",
        ),
    ],
)
def test_errors_that_say_the_same_are_one_family(one: str, two: str) -> None:
    assert family_of_error(an_error(one)) == family_of_error(an_error(two)) is not None


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (OUT_OF_MEMORY.format(2), "ValueError: No available memory for the cache blocks."),
        (
            "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
        ),
        (
            "ImportError: cannot import name 'LogitsWarper' from 'transformers'",
            "TypeError: do_bench() got an unexpected keyword argument 'fast_flush'",
        ),
        (
            "AttributeError: 'Worker' object has no attribute 'a'",
            "AttributeError: 'Pool' object has no attribute 'b'",
        ),
    ],
)
def test_errors_that_say_different_things_are_two(one: str, two: str) -> None:
    assert family_of_error(an_error(one)) != family_of_error(an_error(two))


def test_where_the_message_is_mute_the_frame_speaks() -> None:
    assert (
        family_of_error(an_error("AssertionError: ", "flash.py:forward"))
        == "AssertionError at flash.py:forward"
    )
    assert family_of_error(an_error("AssertionError: ")) is None
    assert family_of_error(an_error("RuntimeError: Engine core initialization failed")) is None


def test_without_an_error_the_symptom_and_what_the_title_names_are_the_family_and_never_the_title() -> None:
    slow = Facts(number=1, is_failure=True, failure_kind="slowdown")

    assert family_of(slow, "Twice as slow with speculative decoding") == "Is slow with speculative decoding"
    assert family_of(slow, "Twice as slow as it was") is None
    wrong = slow.model_copy(update={"failure_kind": "wrong_output"})
    assert family_of(wrong, "Tool calls are cut") == "Gives wrong output with tool calls"
    assert family_of(wrong, "Broken text in the docker image") is None


def test_families_are_counted_and_found_by_an_error(store: Store) -> None:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        bodies = [OUT_OF_MEMORY.format(number) for number in (2, 3)] + [
            "ValueError: the otter bit the beaver"
        ]
        issues = [
            an_issue(n, title=f"[Bug]: it stops, {n}", body=fenced("It stops:", body))
            for n, body in enumerate(bodies, 1)
        ]
        save_issues(session, repo_id, issues)
        derive_issues(session, repo_id, REPO, [1, 2, 3])

    page = families(store, REPO)

    assert (page.items[0].text, page.items[0].reports) == ("GPU out of memory", 2)
    assert (page.reports, page.failures) == (3, 3)


@pytest.mark.parametrize(
    ("title", "kind", "family"),
    [
        ("[Bug]: LoRA gives garbled output", "wrong_output", "Gives wrong output with LoRA"),
        ("[Bug]: A relative path does not work for a LoRA adapter", "wrong_output", None),
    ],
)
def test_a_symptom_is_a_family_where_the_title_states_it(
    title: str, kind: FailureKind, family: str | None
) -> None:
    assert family_of(Facts(number=1, is_failure=True, failure_kind=kind), title) == family
