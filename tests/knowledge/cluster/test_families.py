"""Failures whose error says the same are one family, whatever their clusters."""

from __future__ import annotations

from typing import Any

import pytest

from app.extract.facts import ErrorFact, Facts, FailureKind
from app.knowledge.cluster.families import families, family_of, family_of_error, symptom_rows
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
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/a/envs.py'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/b/c/envs.py'",
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
            "FileNotFoundError: [Errno 2] No such file or directory: '/a/envs.py'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/a/prompts'",
        ),
        (
            "AttributeError: 'Llama_Config' object has no attribute 'hidden_size'",
            "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
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


SYMPTOMS = [pytest.param(row, id=row["name"]) for row in symptom_rows()]


def family_of_title(kind: FailureKind, title: str) -> str | None:
    return family_of(Facts(number=1, is_failure=True, failure_kind=kind), title)


@pytest.mark.parametrize("row", SYMPTOMS)
def test_a_symptom_is_told_by_its_example_and_not_by_another(row: dict[str, Any]) -> None:
    told = family_of_title(row["kinds"][0], row["hit"])
    missed = family_of_title(row["kinds"][0], row["miss"])

    assert told is not None
    assert told.startswith(row["name"])
    assert missed is None or not missed.startswith(row["name"])


@pytest.mark.parametrize(
    ("title", "kind", "family"),
    [
        ("Twice as slow with speculative decoding", "slowdown", "Is slow with speculative decoding"),
        ("Twice as slow as it was", "slowdown", None),
        ("Hangs with an FP8 checkpoint", "hang", None),
        ("[Bug]: LoRA gives garbled output", "wrong_output", "Garbled output"),
        ("[Bug]: A relative path does not work for a LoRA adapter", "wrong_output", None),
        ("[Bug]: Tool calls are cut", "wrong_output", None),
        ("[Bug]: it ends with an illegal memory access", "crash", "Illegal memory access"),
        ("[Bug]: undefined symbol: _ZN3c10", "exception", "Undefined symbol in a library"),
        ("[Bug]: it does not start", "exception", None),
    ],
)
def test_without_an_error_the_title_tells_the_family_and_is_never_one_itself(
    title: str, kind: FailureKind, family: str | None
) -> None:
    assert family_of_title(kind, title) == family


def test_what_is_slow_is_of_its_symptom_though_an_error_stands_beside_it() -> None:
    error = an_error("CUDA error: an illegal memory access")
    slow = Facts(number=1, is_failure=True, failure_kind="slowdown", error=error)

    assert family_of(slow, "Slower after the upgrade: regression in 0.9.0") == "Performance regression"


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
