"""Frames that a screen broke, that stand below their error, or that only a sentence or a test run names."""

from __future__ import annotations

import pytest

from app.extract.facts import ErrorFact
from app.extract.log.root_cause import read_errors
from app.extract.reader import read_issue
from app.extract.text.document import IssueText

LONG = "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/layers/activation_of_all.py"
PREFIX = "ERROR 07-08 15:41:43 [core.py:402]"
GENERATED = "/root/.cache/vllm/torch_compile_cache/0a/rank_0_0/inductor_cache/7a/c7abc.py"


def place(log: str) -> str | None:
    cause = read_errors(log)[1].cause
    return cause.frame if cause else None


def error(title: str, body: str) -> ErrorFact | None:
    return read_issue(IssueText(1, title, body)).facts.error


@pytest.mark.parametrize(
    "frame",
    [
        f'{PREFIX}   File "{LONG}", l\nine 64, in build_all',
        f'{PREFIX}   File "{LONG}", line 64, in\n build_all',
        f'{PREFIX}   File "{LONG[:60]}\n{LONG[60:]}", line 64, in build_all',
    ],
)
def test_a_frame_broken_by_a_screen_is_put_together(frame: str) -> None:
    log = (
        f"{PREFIX} Traceback (most recent call last):\n{frame}\n{PREFIX}     go()\n{PREFIX} ValueError: no\n"
    )

    assert place(log) == "activation_of_all.py:build_all"


def test_a_bare_error_below_a_frame_is_no_part_of_its_name() -> None:
    log = f'Traceback (most recent call last):\n  File "{LONG}", line 64, in build_all\nAssertionError\n'

    assert place(log) == "activation_of_all.py:build_all"


def test_frames_below_their_error_belong_to_it() -> None:
    innermost_first = (
        "IndexError: nothing is left\n"
        '  File "/opt/parser/core.py", line 5, in take_one\n    items.pop()\n'
        '  File "/opt/vllm/tools.py", line 9, in extract\n    return take_one(text)\n'
    )
    notebook = (
        "ValueError: it is odd\nFile /opt/vllm/llm.py:5, in LLM.generate(self)\n----> 5 self.run(\n"
        "File /opt/vllm/seq.py:7, in Seq.run(self)\n----> 7 go()\n"
    )

    assert place(innermost_first) == "core.py:take_one"
    assert place(notebook) == "seq.py:run"


def test_a_generated_file_is_no_place() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/opt/vllm/compiler.py", line 3, in graph\n    go()\n'
        f'  File "{GENERATED}", line 7, in call\n    a = args\nValueError: too many\n'
    )

    assert place(log) == "compiler.py:graph"


def test_a_test_run_s_summary_names_file_and_test() -> None:
    log = "FAILED kernels/test_moe.py::test_all[1-x y-half] - ValueError: the cards differ\n"

    assert place(log) == "test_moe.py:test_all"


def test_a_library_s_own_prefix_is_the_place() -> None:
    log = 'Traceback (most recent call last):\n  File "/opt/vllm/g.py", line 3, in f\n    go()\n'

    assert place(f"{log}RuntimeError: [15:36:55] /p/cpp/grammar.cc:73: the rule is odd\n") == "grammar.cc:73"


def test_a_notebook_s_linked_frame_is_read() -> None:
    frames = "[/opt/vllm/norm.py](https://localhost:8080/#) in forward(self, x)\n     59  out = go(x)\n"

    assert place(f"{frames}\nRuntimeError: it is odd\n") == "norm.py:forward"


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("It is caused by https://example.org/vllm/chat_tools.py#L77 only.", "chat_tools.py:77"),
        ("We read `card.py` with care.", None),
    ],
)
def test_a_sentence_may_say_where_it_happens(sentence: str, wanted: str | None) -> None:
    found = error("[Bug]: it stops", f"{sentence}\n\n```\nValueError: the name is odd\n```\n")

    assert found is not None
    assert found.frame == wanted
