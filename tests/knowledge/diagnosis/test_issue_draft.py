"""A ready-made issue for a failure that nobody has reported."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.issue_draft import MAX_TITLE_CHARS, draft_title, new_issue_address
from app.knowledge.diagnosis.shapes import Diagnosis
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import HEALTHY_LOG, REPO, an_issue, fenced, marlin_log

HUB = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
START = """\
vllm serve Qwen/Qwen3-8B --api-key correct-horse-battery \\
  --tensor-parallel-size 2 --max-model-len 4096
(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1978] vLLM API server version 0.9.1
(APIServer pid=1) INFO 03-14 09:26:40 [utils.py:1] non-default args: {'model': 'Qwen/Qwen3-8B', 'gpu_memory_utilization': 0.95}
NVIDIA H100 80GB HBM3, VLLM_USE_V1=1
"""


def ask(store: Store, log: str) -> Diagnosis:
    return diagnose(store, log, repos=(REPO,))


def draft(store: Store, log: str) -> str:
    return ask(store, log).issue_draft


def test_it_has_the_form_s_headings_in_order(sqlite_store: Store) -> None:
    headings = [line for line in draft(sqlite_store, marlin_log()).splitlines() if line.startswith("#")]

    assert headings == [
        "### Your current environment",
        "### Describe the bug",
        "### Before submitting a new issue...",
    ]


def test_what_the_log_tells_of_the_run_is_filled_in(sqlite_store: Store) -> None:
    text = draft(sqlite_store, START + marlin_log())

    for output in (
        "- vLLM version: `0.9.1`",
        "- GPU: `H100`",
        "- Model: `Qwen/Qwen3-8B`",
        (
            "- Command: `vllm serve Qwen/Qwen3-8B --api-key █████████████████████ --tensor-parallel-size 2 "
            "--max-model-len 4096`"
        ),
        "- Not in the log: PyTorch, GPU driver; run `vllm collect-env`",
    ):
        assert output in text


def test_a_command_that_was_not_logged_is_rebuilt_from_the_printed_arguments(sqlite_store: Store) -> None:
    text = draft(sqlite_store, START.partition("\n  ")[2].partition("\n")[2] + marlin_log())

    assert "- Command, rebuilt from the log: `vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.95`" in text


def test_what_the_log_does_not_tell_is_named(sqlite_store: Store) -> None:
    assert "- Not in the log: vLLM version, GPU, Model, PyTorch, GPU driver; run `vllm collect-env`" in draft(
        sqlite_store, "RuntimeError: the engine lost its third pigeon"
    )


def test_the_telling_part_is_quoted_as_it_stands_in_the_log(sqlite_store: Store) -> None:
    noise = "INFO 03-14 09:26:40 [x.py:1] nothing happened\n" * 500
    log = noise + marlin_log() + noise
    quoted = draft(sqlite_store, log).split("```")[1].splitlines()[1:]

    assert [line for line in quoted if line != "[…]" and line not in log] == []
    assert any("is not divisible by min_thread_n" in line for line in quoted)
    assert any("Traceback" in line for line in quoted)
    assert len(quoted) < 20


def test_what_other_processes_print_in_between_is_left_out(sqlite_store: Store) -> None:
    other = "(Worker_TP1 pid=9) INFO 03-14 09:26:40 [x.py:1] something else\n"
    log = "".join(line + other for line in marlin_log().splitlines(keepends=True))

    assert "something else" not in draft(sqlite_store, log)


@pytest.mark.parametrize("secret", [HUB, "correct-horse-battery", "jane.doe", "10.20.30.40"])
def test_secrets_are_masked(sqlite_store: Store, secret: str) -> None:
    log = START + f"INFO token {HUB} at http://10.20.30.40:80\nValueError: /home/jane.doe/x has no {HUB}\n"
    found = ask(sqlite_store, log)

    assert secret not in found.issue_draft + new_issue_address(REPO, found)


def test_a_log_s_own_fences_do_not_end_the_quote(sqlite_store: Store) -> None:
    assert "````text" in draft(sqlite_store, "ValueError: no ``` here\n")


def test_a_log_without_an_error_asks_what_happened(sqlite_store: Store) -> None:
    assert "Say what happened" in draft(sqlite_store, HEALTHY_LOG)


def test_wrappers_alone_are_said_to_be_no_cause(sqlite_store: Store) -> None:
    assert "only lines that report another error" in draft(
        sqlite_store,
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    )


def test_a_question_is_quoted_with_what_it_lacks(sqlite_store: Store) -> None:
    text = draft(sqlite_store, "gibberish output with fp8 kv cache")

    assert "```text\ngibberish output with fp8 kv cache\n```" in text
    assert "- Not in the question: vLLM version" in text


def test_a_known_failure_needs_no_draft(store: Store, keep: Keep) -> None:
    keep(
        an_issue(11, title="[Bug]: AWQ does not load", body=fenced("See.", marlin_log())),
        *(an_issue(at, body=fenced(f"TypeError: kind {at} of thing\n")) for at in range(20, 30)),
    )
    found = ask(store, marlin_log(pid=77))

    assert (found.verdict, found.issue_draft) == ("same", "")
    assert [line.role for line in found.matches[0].excerpt].count("error") == 1


# The address of GitHub's form


@pytest.mark.parametrize(
    ("log", "has_draft"),
    [
        ("vllm: error: unrecognized arguments: --max-model-length 4096", False),
        ("NotFoundError: The model `gpt-4` does not exist.", False),
        ("OSError: [Errno 98] Address already in use", False),
        ("RuntimeError: Engine core has lost its third pigeon", True),
        ("unrecognized arguments?", True),
    ],
)
def test_what_the_caller_corrects_needs_steps_and_no_draft(
    sqlite_store: Store, log: str, has_draft: bool
) -> None:
    found = ask(sqlite_store, log)

    assert bool(found.issue_draft) == has_draft
    assert found.next_steps


def test_the_title_is_encoded_and_read_back_as_it_was(sqlite_store: Store) -> None:
    address = new_issue_address(REPO, ask(sqlite_store, "ValueError: a & b = 'c' ü?\n"))
    parts = urlsplit(address)

    assert (parts.netloc, parts.path) == ("github.com", f"/{REPO}/issues/new")
    assert parse_qs(parts.query) == {
        "template": ["400-bug-report.yml"],
        "title": ["[Bug]: ValueError: a & b = 'c' ü?"],
    }


def test_a_long_title_is_cut(sqlite_store: Store) -> None:
    title = draft_title(ask(sqlite_store, f"ValueError: {'word ' * 100}\n"))

    assert len(title) <= MAX_TITLE_CHARS
    assert title.endswith("…")


def test_another_repository_has_no_form_of_vllm_s(sqlite_store: Store) -> None:
    assert (
        new_issue_address("own/fork", ask(sqlite_store, "hello there"))
        == "https://github.com/own/fork/issues/new"
    )
