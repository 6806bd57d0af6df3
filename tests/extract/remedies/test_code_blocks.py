"""Remedies that only stand in a code block, and the words around it that tell they worked."""

from __future__ import annotations

import pytest

from app.extract.remedies.code_blocks import find_in_code
from app.extract.remedies.workarounds import find_workarounds
from tests.extract.saying import an_issue


def remedies(body: str, title: str = "EngineCore stops at startup") -> list[tuple[str, str]]:
    return [(w.action, w.outcome) for w, _ in find_workarounds(an_issue(body, title=title))]


@pytest.mark.parametrize(
    "body",
    [
        "It runs fine like this:\n```bash\n--moe-backend triton\n```\n",
        "I then started it with\n```bash\n--moe-backend triton\n```\nIn that mode the error is gone.",
        "We also tried:\n```\n--moe-backend triton\n```\nWith this it works as expected.",
    ],
)
def test_a_setting_in_a_code_block_is_a_remedy_if_the_line_beside_it_says_so(body: str) -> None:
    assert remedies(body) == [("--moe-backend triton", "works")]


@pytest.mark.parametrize(
    "body",
    [
        "I run it with\n```bash\n--moe-backend triton\n```\nThis gives an error, so we removed that.",
        "I run it with\n```bash\n--moe-backend triton\n```\nThe other server works fine.",
        "I tried\n```bash\n--moe-backend triton\n```\nIt still fails.",
        "Does it work like this:\n```bash\n--moe-backend triton\n```\n",
        "It should work like this:\n```bash\n--moe-backend triton\n```\n",
        "I run it with\n```bash\n--moe-backend triton\n```\nIt does not work properly.",
    ],
)
def test_a_code_block_that_failed_or_that_nobody_praises_is_none(body: str) -> None:
    assert remedies(body) == []


def test_what_a_sentence_names_its_code_block_only_repeats() -> None:
    body = "With eager mode it works:\n```bash\nvllm serve org/m-7b --enforce-eager --port 80\n```\n"
    assert len(remedies(body)) == 1


def test_a_long_block_is_a_script_and_no_change() -> None:
    issue = an_issue("It runs fine like this:\n```bash\n--moe-backend triton\n" + "x = 1\n" * 200 + "```\n")
    assert list(find_in_code(issue, {}, ())) == []


def test_commands_below_a_solution_count_where_somebody_shares_it() -> None:
    body = (
        "1. Issue: the compiler is not found.\n   Solution:\n   ```bash\n"
        "   export PATH=/opt/tool/bin:$PATH\n   ```\n\n{}\n"
    )
    assert remedies(body.format("Hope this helps others.")) == [("export PATH=/opt/tool/bin:$PATH", "works")]
    assert remedies(body.format("What do you think?")) == []


def test_the_advice_of_a_guide_was_tried_by_its_writers() -> None:
    body = "* The tokenizer cannot be read.\n  * Please upgrade transformers to 4.44.1 before you start.\n"
    assert remedies(body, title="FAQ and known issues of the release") == [
        ("upgrade transformers to 4.44.1", "works")
    ]
    assert remedies(body) == []
