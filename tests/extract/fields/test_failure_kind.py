"""Whether it is a failure, and of what kind.

Texts that propose or wish rather than report.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.extract.fields.failure_kind import (
    find_failure,
    is_feature_request,
    is_proposal,
    is_titled_request,
)
from app.extract.text.blocks import read_document
from app.extract.text.document import IssueText
from tests.extract.saying import an_issue


def told(
    title: str, error: str | None = None, message: str = "", body: str = "", labels: tuple[str, ...] = ()
) -> str:
    is_failure, kind, _ = find_failure(an_issue(body, title=title, labels=labels), error, message)
    assert is_failure == (kind != "none")
    return kind


@pytest.mark.parametrize(
    ("title", "error", "message", "kind"),
    [
        ("[Bug]: server dies", "CUDA error", "an illegal memory access was encountered", "crash"),
        ("[Bug]: server dies", "Segmentation fault", "", "crash"),
        ("[Bug]: crash at startup", "KeyError", "'layers.0.mlp'", "exception"),
        ("[Bug]: cannot start", "CUDA error", "invalid device ordinal", "exception"),
        ("[Bug]: cannot start", "ValueError", "No available memory for the cache blocks.", "oom"),
        ("[Bug]: OOM with two cards", "RuntimeError", "Engine process failed to start", "oom"),
        ("[Bug]: stuck at the P2P check", "RuntimeError", "invalid argument", "hang"),
        ("[Installation]: no wheel", "ModuleNotFoundError", "No module named 'vllm._C'", "install"),
        ("[Performance]: throughput drops at 8k", "CUDA error", "an illegal memory access", "slowdown"),
        ("[Bug]: bad JSON", "ValidationError", "Invalid JSON: expected ident", "wrong_output"),
        ("pip install error - mismatch", "RuntimeError", "The detected CUDA version mismatches", "install"),
        ("[Usage]: I cannot compile vllm here", "CalledProcessError", "Command '['cmake', '-G']'", "install"),
        ("Does it run on a Mac?", "RuntimeError", "Cannot find CUDA_HOME.", "install"),
        ("[Bug]: cannot serve on a fresh install", "TypeError", "got an unexpected keyword", "exception"),
        ("[Bug]: torch.compile fails to build the graph", "TypeError", "no", "exception"),
        ("[Bug]: the path crashes with prefix caching", "CUDA error", "", "crash"),
        ("[Bug]: Process killed on start", "Segmentation fault", "SIGABRT received", "crash"),
    ],
)
def test_the_error_and_the_title_decide(title: str, error: str, message: str, kind: str) -> None:
    assert told(title, error, message) == kind


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("[Bug]: EngineCore segfaults with AITER", "crash"),
        ("[Bug]: the answer is garbled on B200", "wrong_output"),
        ("Decode is 20% slower on H100", "slowdown"),
        ("[Bug]: the server hangs after a while", "hang"),
        ("[Bug]: something odd", "other"),
        ("[Bug]: host memory continues to grow over night", "oom"),
        ("[Bug]: the performance under load is unstable", "slowdown"),
        ("[Bug]: the message of a tool call is empty", "wrong_output"),
        ("[Bug]: two cards give bad output", "wrong_output"),
        ("[Bug]: Missing attribute 'x' in tests", "exception"),
        ("[Bug]: GGUF loading is broken", "other"),
        ("[Bug]: timestamps are truncated", "wrong_output"),
        ("[Bug]: the seed is not applied", "wrong_output"),
        ("[Bug]: latency spikes at batch 16", "slowdown"),
        ("[Bug]: excessive memory for graphs", "oom"),
        ("[Bug]: the second node is pending", "hang"),
        ("Trouble with two adapters", "other"),
    ],
)
def test_without_an_error_the_title_decides(title: str, kind: str) -> None:
    assert told(title, labels=("bug",)) == kind


def test_without_a_telling_title_the_text_decides() -> None:
    assert told("Question on serving", body="After an hour the server hangs without a log line.") == "hang"


@pytest.mark.parametrize(
    "title", ["[Feature]: crash reports", "[RFC]: slow paths", "[New Model]: M", "[Doc]: broken link"]
)
def test_a_request_is_no_failure(title: str) -> None:
    assert told(title, "ValueError", "x") == "none"


def test_a_request_that_shows_its_failure_is_one() -> None:
    assert told("[Feature]: AssertionError: not with TP", "AssertionError", "not with TP") == "exception"
    request = an_issue("It ends so.", title="[New Model]: org/name")
    assert find_failure(request, "KeyError", "'x'", is_printed=True)[:2] == (True, "exception")
    plan = an_issue("It ends so.", title="[RFC]: model loading")
    assert find_failure(plan, "KeyError", "'x'", is_printed=True)[:2] == (False, "none")


@pytest.mark.parametrize(
    ("title", "body", "labels"),
    [
        ("Refactor a layer", "The code is error prone.", ()),
        ("[Usage]: How can I count the tokens?", "The API does not return them.", ("usage",)),
        ("[Installation]: How to install it through Docker?", "The docs name two ways.", ("installation",)),
        ("[Performance]: use arrays in place of lists", "", ("performance",)),
        ("[Performance]: Refactor a call to improve throughput", "It adds overhead.", ("performance",)),
        ("[CI]: Replace large models", "", ("ci/build",)),
        ("What is a high-throughput setting?", "vLLM is a high-throughput engine.", ()),
    ],
)
def test_a_word_of_failure_in_a_question_is_no_report(title: str, body: str, labels: tuple[str, ...]) -> None:
    assert told(title, body=body, labels=labels) == "none"


def test_a_failed_build_is_an_install_unless_a_server_ran() -> None:
    log = "```\nrunning build_ext\nerror: subprocess-exited-with-error\n```"
    assert told("Server on ARM", "NameError", "name 'x' is not defined", log) == "install"
    ran = log + "\nInitializing an LLM engine (v0.6.1) with config\n"
    assert told("Server on ARM", "NameError", "name 'x' is not defined", ran) == "exception"


def test_a_plain_question_is_no_failure() -> None:
    assert told("[Performance]: does it take tensors?", labels=("performance",)) == "none"


@given(st.text(max_size=80), st.text(max_size=200), st.none() | st.text(max_size=20), st.text(max_size=30))
def test_the_kind_has_a_quote_whatever_the_text(
    title: str, body: str, error: str | None, message: str
) -> None:
    document = an_issue(body, title=title)
    _, _, evidence = find_failure(document, error, message)
    if evidence is not None:
        assert document.sources[evidence.source][evidence.start : evidence.end] == evidence.quote


def test_a_question_labelled_as_bug_reports_nothing_by_itself() -> None:
    assert told("Do you take embeddings?", labels=("bug",)) == "none"


@pytest.mark.parametrize(
    "title", ["[RFC]: a scheduler", "[Roadmap] Q3", "v0.9 Release Tracker", "Release v0.9.1"]
)
def test_plans_and_trackers_are_proposals(title: str) -> None:
    document = read_document(IssueText(1, title, "ValueError: x"))
    assert is_proposal(document)
    assert is_feature_request(document)


@pytest.mark.parametrize(
    "title", ["[Bug]: the release stops", "[Feature]: a flag", "Supporting files are missing"]
)
def test_reports_and_features_are_no_plans(title: str) -> None:
    assert not is_proposal(read_document(IssueText(1, title, "")))


def test_a_feature_is_a_wish_until_something_failed() -> None:
    assert is_feature_request(read_document(IssueText(1, "[Feature]: a flag", "It would help.")))
    assert not is_feature_request(read_document(IssueText(1, "[Feature]: a flag", "I get KeyError: 'x'")))
    assert not is_feature_request(read_document(IssueText(1, "[Bug]: a flag", "It stops.")))


def test_the_form_for_features_is_a_wish_without_a_tag_too() -> None:
    form = "### 🚀 The feature, motivation and pitch\n\nIt would help on an H100."
    assert is_feature_request(read_document(IssueText(1, "A flag for all", form)))
    assert not is_feature_request(read_document(IssueText(1, "A flag for all", form + "\nKeyError: 'x'")))


def test_what_a_title_wishes_for_is_wanted() -> None:
    assert is_titled_request(read_document(IssueText(1, "[Feature]: CUDA 13.0", "KeyError: 'x'")))
    assert not is_titled_request(read_document(IssueText(1, "[Bug]: CUDA 13.0", "")))


@pytest.mark.parametrize(
    "title",
    [
        "HACKEAR Insta gratis, como recuperar una cuenta de Instagram",
        "Hack Facebook for free, how to recover an account",
    ],
)
def test_advertising_reports_nothing(title: str) -> None:
    assert told(title) == "none"


def test_a_failure_that_names_a_company_is_one() -> None:
    assert told("Crash with facebook/opt-125m after recovering a checkpoint") != "none"


def test_a_failing_group_of_the_ci_tells_no_kind_without_an_error() -> None:
    body = "| hardware | status |\n|---|---|\n| `mi325_1` | fail |"
    assert told("[CI Failure]: mi325_1: Kernels", body=body, labels=("ci-failure",)) == "other"
    assert told("[CI Failure]: Kernels run out of memory", body=body) == "oom"
    assert told("[CI Failure]: Kernels", "KeyError", "'a'", body=body) == "exception"


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("[Performance]: another engine is 3 times faster", "slowdown"),
        ("[Performance]: prefix caching of hybrid models", "none"),
        ("[Performance]: 并发请求太慢", "slowdown"),
    ],
)
def test_a_performance_report_is_a_slowdown_if_it_finds_fault(title: str, kind: str) -> None:
    assert told(title, labels=("performance",)) == kind
