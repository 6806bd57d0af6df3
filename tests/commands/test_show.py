"""`triage digest` as a person meets it: three shapes of one week, and one clear line for what is no week."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.store.schema import migrate
from app.store.session import open_store
from tests.command import one_line, triage
from tests.knowledge.made_week import WEEK, put_week


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base with a quarter of reports."""
    made = tmp_path_factory.mktemp("digest")
    store = open_store(f"sqlite:///{made}/triage.db")
    migrate(store)
    put_week(store)
    store.close()
    return made


def test_a_week_is_told_as_json(folder: Path) -> None:
    found = json.loads(triage("digest", "--week", WEEK, "--format", "json", folder=folder).stdout)

    assert (found["week"], found["failures"]) == (WEEK, 14)


def test_the_newest_whole_week_is_told_as_markdown(folder: Path) -> None:
    answer = triage("digest", folder=folder)

    assert answer.returncode == 0
    assert answer.stdout.decode().startswith(f"# vllm-project/vllm, week {WEEK}\n")
    assert answer.stderr == b""


def test_the_html_is_fit_to_be_mailed_and_the_same_each_time(folder: Path) -> None:
    one = triage("digest", "--week", WEEK, "--format", "html", folder=folder).stdout
    other = triage("digest", "--week", WEEK, "--format", "html", folder=folder).stdout

    assert one == other
    assert one.decode().lstrip().startswith("<!doctype html>")
    assert b"style=" not in one


@pytest.mark.parametrize(("week", "said"), [("2026-W54", "no week 54"), ("last", "2026-W46")])
def test_what_is_no_week_is_one_line_and_exit_2(folder: Path, week: str, said: str) -> None:
    answer = triage("digest", "--week", week, folder=folder)

    assert answer.returncode == 2
    assert said in one_line(answer)
    assert answer.stdout == b""


def test_an_empty_base_says_what_to_do(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    answer = triage("digest", folder=tmp_path)

    assert answer.returncode == 1
    assert "triage sync" in one_line(answer)


def test_another_repository_of_which_nothing_is_stored_is_named(folder: Path) -> None:
    answer = triage("digest", "--repo", "flashinfer-ai/flashinfer", folder=folder)

    assert answer.returncode == 1
    assert "no dated issue of flashinfer-ai/flashinfer is stored" in one_line(answer)
