"""`triage report` as a person meets it: Markdown or JSON on stdout, one clear line for what cannot be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import one_line, triage

REPO = "vllm-project/vllm"
ROW = {
    "number": 900,
    "title": "[Bug]: the rope fails",
    "body": "It works with `--moe-backend triton`. See #850.",
    "state": "open",
    "created_at": "2026-04-08T09:00:00Z",
    "updated_at": "2026-04-08T09:00:00Z",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base with an issue and a pull request."""
    made = tmp_path_factory.mktemp("report")
    pull = {**ROW, "number": 850, "pull_request": {"merged_at": None}}
    (made / "rows.jsonl").write_text(f"{json.dumps(ROW)}\n{json.dumps(pull)}\n")
    assert triage("import", "rows.jsonl", folder=made).returncode == 0
    return made


@pytest.mark.parametrize("name", ["900", f"https://github.com/{REPO}/issues/900"])
def test_a_number_or_an_address_gives_the_report(folder: Path, name: str) -> None:
    answer = triage("report", name, folder=folder)

    assert answer.returncode == 0
    assert answer.stdout.decode().startswith(f"# {REPO}#900: ")
    assert answer.stderr == b""


def test_the_report_can_be_json(folder: Path) -> None:
    found = json.loads(triage("report", "900", "--format", "json", folder=folder).stdout)

    assert (found["repo"], found["number"]) == (REPO, 900)
    assert [edge["target"] for edge in found["graph"]["edges"]] == [f"{REPO}#850"]


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("seven", 2, "not the address of a GitHub issue"),
        (f"https://github.com/{REPO}/pull/850", 2, "pull request"),
        ("https://github.com/acme/engine/issues/4", 2, "Only issues of"),
        ("850", 1, "is a pull request"),
    ],
)
def test_what_is_no_issue_is_one_line_and_an_exit_code(folder: Path, name: str, code: int, said: str) -> None:
    answer = triage("report", name, folder=folder)

    assert answer.returncode == code
    assert said in one_line(answer)
    assert answer.stdout == b""


def test_an_issue_that_is_not_stored_is_asked_of_github(folder: Path) -> None:
    answer = triage("report", "901", folder=folder)

    assert answer.returncode == 1
    assert b"not stored: asking GitHub" in answer.stderr
    assert b"could not be fetched: GitHub could not be reached" in answer.stderr
    assert b"Traceback" not in answer.stderr
