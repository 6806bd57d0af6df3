"""The reading room's doors: any text can be read, and every value points at the words that say it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.extract.facts import Facts
from app.extract.reader import read_issue, read_log, read_question
from app.extract.text.document import CommentText, IssueText

SITE = "/opt/venv/lib/python3.12/site-packages"
LOG = f"""\
(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1] vLLM API server version 0.9.1
(EngineCore_DP0 pid=9) INFO 03-14 09:26:41 [core.py:58] Initializing a V1 LLM engine (v0.9.1) with config: model='meta-llama/Llama-3.1-8B-Instruct', quantization=fp8
(EngineCore_DP0 pid=9) INFO 03-14 09:26:42 [cuda.py:1] Using Flash Attention backend on V1 engine.
(EngineCore_DP0 pid=9) ERROR 03-14 09:26:54 [core.py:842] EngineCore failed to start.
(EngineCore_DP0 pid=9) ERROR 03-14 09:26:54 [core.py:842] Traceback (most recent call last):
(EngineCore_DP0 pid=9) ERROR 03-14 09:26:54 [core.py:842]   File "{SITE}/vllm/model_executor/layers/linear.py", line 20, in weight_loader
(EngineCore_DP0 pid=9) ERROR 03-14 09:26:54 [core.py:842] ValueError: shard sizes differ: 128 and 96
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
"""
ENVIRONMENT = """\
PyTorch version: 2.7.0+cu126
Python version: 3.12.9 (main, Feb  5 2025, 08:49:00) [GCC 11.4.0] (64-bit runtime)
GPU models and configuration:
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3
Nvidia driver version: 550.54.15
[pip3] transformers==4.52.1
vLLM Version: 0.9.1
"""
BODY = f"""\
### Your current environment

```text
{ENVIRONMENT}```

### 🐛 Describe the bug

`vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2 --quantization fp8` fails, but 0.8.5 worked.
With `--enforce-eager` it works. Same as #12345.

```text
{LOG}```
"""
ISSUE = IssueText(
    39288,
    "[Bug]: ValueError on start with fp8",
    BODY,
    user="reporter",
    comments=(
        CommentText("Fixed by #12399.", 77, "dev", "MEMBER"),
        CommentText("`VLLM_USE_V1=0` works for me.", None, "someone"),
    ),
)

CITED = (
    "gpus",
    "models",
    "backends",
    "versions",
    "error",
    "workarounds",
    "regression",
    "related",
    "related_elsewhere",
)


def values_of(facts: Facts) -> set[tuple[str, str]]:
    """Every extracted value that must be cited, as (field, value) with the field's key where it has one."""
    found: set[tuple[str, str]] = set()
    found |= {("gpus", value) for value in facts.gpus} | {("models", value) for value in facts.models}
    found |= {(f"backends.{key}", value) for key, held in facts.backends.items() for value in held}
    found |= {(f"versions.{key}", value) for key, value in facts.versions.items()}
    found |= {("workarounds", item.action) for item in facts.workarounds}
    found |= {("related", str(number)) for number in facts.related}
    if facts.error is not None:
        found.add(("error.message", facts.error.message or facts.error.type or ""))
        found |= {("error.wrappers", text) for text in facts.error.wrappers}
        found |= {("error.other", text) for text in facts.error.other}
    if facts.regression is not None:
        for key, value in facts.regression.model_dump(exclude_none=True).items():
            found |= {(f"regression.{key}", one) for one in (value if isinstance(value, tuple) else [value])}
    return found


def false_quotes(issue: IssueText) -> list[Any]:
    reading = read_issue(issue)
    sources = reading.document.sources
    return [
        item for item in reading.facts.evidence if sources[item.source][item.start : item.end] != item.quote
    ]


def uncited(issue: IssueText) -> set[tuple[str, str]]:
    facts = read_issue(issue).facts
    return values_of(facts) - {(item.field, item.value) for item in facts.evidence}


# An issue


def test_an_issue_s_fields_are_read() -> None:
    facts = read_issue(ISSUE).facts

    assert (facts.is_failure, facts.failure_kind, facts.gpus, facts.gpu_count) == (
        True,
        "exception",
        ("H100",),
        2,
    )
    assert facts.models == ("meta-llama/Llama-3.1-8B-Instruct",)
    assert facts.versions["vllm"] == "0.9.1"
    assert facts.error is not None
    assert (facts.error.type, facts.error.message, facts.error.frame) == (
        "ValueError",
        "shard sizes differ: 128 and 96",
        "linear.py:weight_loader",
    )
    assert facts.related == (12345, 12399)


def test_a_question_s_machine_model_and_version_are_read() -> None:
    asked = read_question("Qwen3-30B-A3B is slow on 2xH100 since v0.10.1")

    assert (asked.gpus, asked.gpu_count, asked.models) == (("H100",), 2, ("Qwen3-30B-A3B",))
    assert asked.versions["vllm"] == "0.10.1"


def test_every_quote_equals_its_span() -> None:
    assert false_quotes(ISSUE) == []


def test_every_value_has_evidence() -> None:
    assert uncited(ISSUE) == set()


def test_the_same_issue_is_read_the_same_twice() -> None:
    assert read_issue(ISSUE).facts == read_issue(ISSUE).facts


def test_the_root_s_signature_comes_first() -> None:
    signatures = read_issue(ISSUE).facts.signatures

    assert [item.role for item in signatures] == ["root"]
    assert signatures[0].text == "ValueError | shard sizes differ: <n> and <n2> | linear:weight_loader"


def test_an_error_only_in_the_title_is_read() -> None:
    facts = read_issue(IssueText(1, "[Bug]: ValueError: no such head size 80", "It fails.")).facts

    assert facts.error is not None
    assert (facts.error.type, facts.error.message) == ("ValueError", "no such head size 80")
    assert [item.source for item in facts.evidence if item.field == "error.message"] == ["title"]


def test_an_error_only_in_a_comment_is_read() -> None:
    issue = IssueText(1, "[Bug]: it fails", "See below.", comments=(CommentText(f"```\n{LOG}```", 5),))
    facts = read_issue(issue).facts

    assert facts.error is not None
    assert facts.error.message == "shard sizes differ: 128 and 96"
    assert [item.source for item in facts.evidence if item.field == "error.message"] == ["comment:5"]


def test_a_comment_without_an_id_is_cited_by_its_position() -> None:
    issue = IssueText(
        1, "[Bug]: it fails", "See below.", comments=(CommentText("ok"), CommentText(f"```\n{LOG}```"))
    )

    assert {item.source for item in read_issue(issue).facts.evidence if item.field == "error.message"} == {
        "comment:#2"
    }


def test_a_request_reports_no_failure() -> None:
    facts = read_issue(IssueText(1, "[Feature]: please support sm_110", "It would be good to have it.")).facts

    assert (facts.is_failure, facts.failure_kind, facts.error, facts.signatures, facts.summary) == (
        False,
        "none",
        None,
        (),
        "",
    )


def test_an_empty_issue_has_no_facts() -> None:
    assert read_issue(IssueText(1, "", "")).facts == Facts(number=1)


# A log


def test_a_log_s_cause_and_surroundings_are_read() -> None:
    reading = read_log(LOG)

    assert reading.errors.cause is not None
    assert (reading.errors.cause.type, reading.errors.cause.line.number) == ("ValueError", 7)
    assert reading.surroundings.versions["vllm"] == "0.9.1"
    assert reading.surroundings.models == ("meta-llama/Llama-3.1-8B-Instruct",)
    assert [item.role for item in reading.signatures] == ["root"]


def test_a_log_and_an_issue_with_it_have_the_same_signature() -> None:
    assert read_log(LOG).signatures == read_issue(ISSUE).facts.signatures


# Any text

PIECES = [
    *LOG.splitlines(keepends=True),
    *ENVIRONMENT.splitlines(keepends=True),
    "```text\n",
    "```\n",
    "### Your current environment\n",
    "\n",
    "\r\n",
    " ",
    "<details>",
    "</details>",
    "#12345",
    "flashinfer-ai/flashinfer#7",
    "--tensor-parallel-size 2 ",
    "works with 0.8.5 but fails in 0.9.1. ",
    "`--enforce-eager` works. ",
    "fixed by #7",
    "since #8",
    "\x1b[0m",
    "é🦙",
    "\x00",
    "vllm serve org/m-7b ",
    "- [x] done\n",
    "> quoted ",
    "H100 ",
    "x" * 500,
    '"',
    "'",
    "\\",
    "{",
    "}",
    "(",
    "=",
    ": ",
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=200)


@given(texts, texts, texts)
def test_any_issue_can_be_read_and_every_quote_equals_its_span(title: str, body: str, comment: str) -> None:
    issue = IssueText(1, title, body, comments=(CommentText(comment, None, "x", "MEMBER"),))

    assert (false_quotes(issue), uncited(issue)) == ([], set())


@given(texts)
def test_any_log_can_be_read_and_every_quote_equals_its_span(log: str) -> None:
    reading = read_log(log)

    assert [item for item in reading.surroundings.evidence if log[item.start : item.end] != item.quote] == []
    assert [line for line in reading.lines if log[line.start : line.end] != line.raw] == []


@pytest.mark.long
@settings(max_examples=3_000)
@given(texts, texts, texts)
def test_very_many_issues_can_be_read(title: str, body: str, comment: str) -> None:
    issue = IssueText(1, title, body, comments=(CommentText(comment, 9, "x", "MEMBER"),))

    assert (false_quotes(issue), uncited(issue)) == ([], set())


@pytest.mark.parametrize(
    ("title", "body", "version"),
    [
        ("Out of memory after the upgrade from 0.7.3 to 0.8.2", "0.7.3 worked well.", "0.8.2"),
        ("It hangs", "We upgraded vLLM from 0.3.3, which works fine, to 0.4.1, which hangs.", "0.4.1"),
        ("The server crashes on start", "This did not happen in v0.7.3.", None),
        ("The server crashes on start in v0.7.3", "It crashes.", "0.7.3"),
    ],
)
def test_the_version_that_worked_is_not_the_one_that_fails(
    title: str, body: str, version: str | None
) -> None:
    facts = read_issue(IssueText(1, f"[Bug]: {title}", body)).facts

    assert facts.versions.get("vllm") == version
    assert all(item.value == version for item in facts.evidence if item.field == "versions.vllm")


def test_a_fix_in_a_release_before_the_failing_one_was_of_another_failure() -> None:
    body = "The engine stops with vLLM 0.9.2.\n\nThat part was fixed in 0.9.0, yet the server still stops."
    facts = read_issue(IssueText(1, "[Bug]: engine stops in 0.9.2", body)).facts
    later = read_issue(IssueText(1, "[Bug]: engine stops in 0.9.2", body.replace("0.9.0", "0.10.0"))).facts

    assert facts.versions["vllm"] == "0.9.2"
    assert facts.regression is None or facts.regression.fixed_in is None
    assert later.regression is not None
    assert later.regression.fixed_in == "0.10.0"
