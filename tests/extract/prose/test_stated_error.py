"""The error that people name in their own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.prose.stated_error import WRAPPER, find_stated_error, find_stated_place
from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from tests.extract.saying import an_issue

Told = tuple[str | None, str, str | None]


def said(
    body: str, title: str = "[Bug]: the engine stops", *comments: str, of_comments: bool = False
) -> Told | None:
    found = find_stated_error(an_issue(body, *comments, title=title), comments=of_comments)
    return (found.type, found.message, found.frame) if found else None


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            'The configuration fails with the error: "No way to read the processor".',
            (None, "No way to read the processor", None),
        ),
        (
            "FooConfig object has no attribute 'num_heads' once it starts.",
            ("AttributeError", "FooConfig object has no attribute 'num_heads'", None),
        ),
        (
            "Serving dies with an IndexError in gpu_model_runner.py.",
            ("IndexError", "", "gpu_model_runner.py"),
        ),
        (
            "An illegal memory access at custom_all_reduce.cuh:455 ends it.",
            ("CUDA error", "illegal memory access", "custom_all_reduce.cuh:455"),
        ),
        ("It stops at startup with an illegal memory access.", ("CUDA error", "illegal memory access", None)),
        ("It ends with an `IndexError` from Triton's `convert_all`.", ("IndexError", "", None)),
        ("First a cuBLAS internal error, later nothing.", ("CUDA error", "", None)),
        ("The batched matmul segfaults on the second request.", ("Segmentation fault", "", None)),
        ("Rank 3 hits an assertion after the first step.", ("AssertionError", "", None)),
        ("The loader stops with a key error.", ("KeyError", "", None)),
        ("Both ranks end with an NCCL error.", ("NCCL error", "", None)),
        ("The kernel raises a HIP error on that card.", ("HIP error", "", None)),
        (
            "finish_step() in vllm/v1/engine/core.py reads None, so it raises an AttributeError.",
            ("AttributeError", "", "core.py:finish_step"),
        ),
        ("It ends in a ValueError at loader.py:load_all.", ("ValueError", "", "loader.py:load_all")),
        (
            'It raises a `ValueError` with the message "no such head size".',
            ("ValueError", "no such head size", None),
        ),
        (
            'We see CUDA error "invalid resource handle" at once.',
            ("CUDA error", "invalid resource handle", None),
        ),
        ("On my card: No module named 'foo.bar'", ("ModuleNotFoundError", "No module named 'foo.bar'", None)),
        (
            "It says that cannot import name 'Foo' from 'bar.baz'.",
            ("ImportError", "cannot import name 'Foo' from 'bar.baz'", None),
        ),
        ("It stops: name 'foo_ops' is not defined", ("NameError", "name 'foo_ops' is not defined", None)),
        (
            "We get 'NoneType' object is not subscriptable at once.",
            ("TypeError", "'NoneType' object is not subscriptable", None),
        ),
        (
            "It stops: Foo.step() missing 1 required positional argument: 'when'",
            ("TypeError", "Foo.step() missing 1 required positional argument: 'when'", None),
        ),
        (
            "Serving it gives No available memory for the cache blocks.",
            ("ValueError", "No available memory for the cache blocks", None),
        ),
        ("Two cards: Failed to infer device type", ("RuntimeError", "Failed to infer device type", None)),
        ("Cuda failure 'bad peer access'", ("CUDA error", "bad peer access", None)),
        (
            "The Tiny 'FooTokenizer' object has no attribute 'to_bytes'",
            ("AttributeError", "'FooTokenizer' object has no attribute 'to_bytes'", None),
        ),
    ],
)
def test_an_error_named_in_a_sentence_is_read(body: str, wanted: Told) -> None:
    assert said(body) == wanted


@pytest.mark.parametrize(
    "body",
    [
        "It serves random tokens without any IndexError.",
        "There is no illegal memory access any more.",
        "The loader should raise a ValueError here.",
        "A different IndexError was fixed last week.",
        "One gets slow answers instead of an OutOfMemoryError.",
        "Is it a ValueError that I have to expect?",
        "A ConnectionResetError comes later.",
        "The key error message stands below.",
        "An error is raised.",
        "A warning only: Failed to initialize NumPy: No module named 'numpy' (tensor_numpy)",
        "",
    ],
)
def test_what_is_denied_wished_or_of_another_failure_is_no_error(body: str) -> None:
    assert said(body) is None


def test_a_named_wrapper_counts_only_where_nothing_else_is_named() -> None:
    wrapped = find_stated_error(an_issue("The EngineDeadError comes later."))
    assert wrapped is not None
    assert (wrapped.type, wrapped.rule) == ("EngineDeadError", WRAPPER)

    assert said("It ends in an EngineDeadError. Before it, the loader raises a KeyError.") == (
        "KeyError",
        "",
        None,
    )
    facts = read_issue(IssueText(1, "[Bug]: hang with EngineDeadError under load", "It hangs.")).facts
    assert facts.error is not None
    assert (facts.error.type, facts.failure_kind, facts.signatures) == ("EngineDeadError", "hang", ())


def test_a_message_may_stand_in_a_block_behind_the_words_that_announce_it() -> None:
    body = 'A `CacheMissError` exception is raised with this error message: ```"No such snapshot here."```'
    assert said(body) == ("CacheMissError", "No such snapshot here.", None)


def test_the_title_names_it_too() -> None:
    assert said("It is as the title says.", "[Bug]: KeyError when the adapter is loaded") == (
        "KeyError",
        "",
        None,
    )


def test_a_request_reports_no_error() -> None:
    assert said("It raises a ValueError today.", "[Feature]: a wider range of sizes") is None


def test_what_a_section_only_proposes_is_no_report() -> None:
    assert said("Slow.\n\n### Suggested fix\n\nThe loader raises a ValueError then.") is None


def test_a_comment_s_error_is_read_where_title_and_body_name_none() -> None:
    assert said("It stops.", "Stops", "Here it ends with an illegal memory access.") is None
    assert said("It stops.", "Stops", "Here it ends with an illegal memory access.", of_comments=True) == (
        "CUDA error",
        "illegal memory access",
        None,
    )


def test_a_log_s_error_comes_before_what_people_say() -> None:
    body = "It ends with a KeyError.\n\n```\nValueError: the head size 80 is not supported\n```"
    error = read_issue(IssueText(1, "[Bug]: it ends", body)).facts.error

    assert error is not None
    assert (error.type, error.message) == ("ValueError", "the head size 80 is not supported")


def test_the_evidence_of_a_stated_error_is_its_own_words() -> None:
    facts = read_issue(IssueText(1, "[Bug]: it stops", "The matmul segfaults on gfx942.")).facts

    assert [(item.quote, item.source) for item in facts.evidence if item.field == "error.message"] == [
        ("segfaults", "body")
    ]


def test_a_place_named_beside_the_class_is_found() -> None:
    document = an_issue("The crash is a ValueError in `merge_all()` of `gpu_model_runner.py`.")

    assert find_stated_place(document, "ValueError") == "gpu_model_runner.py:merge_all"
    assert find_stated_place(document, "KeyError") is None


def test_a_wide_colon_in_a_title_introduces_the_message_too() -> None:
    assert said("It stops.", "[Bug]: 推理出现 KeyError：residual") == ("KeyError", "residual", None)


@given(
    st.lists(
        st.sampled_from(
            ["KeyError", " in ", "a.py", "load()", '"', "`", "no ", "segfaults", ". ", ": ", "\n", "é"]
        ),
        max_size=20,
    ).map("".join)
)
def test_a_stated_error_stands_in_its_source(body: str) -> None:
    document = an_issue(body, title=body.replace("\n", " "))
    found = find_stated_error(document)

    assert found is None or any(
        text[found.line.start : found.line.end] == found.line.raw for text in document.sources.values()
    )
