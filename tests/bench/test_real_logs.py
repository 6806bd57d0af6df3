"""When an answer to a real log is right, and how such logs are packed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.bench.cases import RealLog, load_pinned
from app.bench.run import check_answer, is_root_cause
from app.knowledge.diagnosis.shapes import Diagnosis, IndexState, LogEnvironment, RootCause
from tests.benchmarks.real_logs import choose, failure_of, pack, read_folder

LOG = RealLog(
    id="0.32.0-lora-rank64",
    vllm_version="0.32.0",
    error="LoRA rank 64 is greater than max_lora_rank 16.",
    also_ok=("Loading lora /data/adapters/a failed",),
    log="x",
)


def an_answer(headline: str, message: str | None) -> Diagnosis:
    root = RootCause(type="ValueError", message=message, line=1, quote="") if message else None
    return Diagnosis(
        verdict="unknown",
        root_cause=root,
        environment=LogEnvironment(),
        index=IndexState(issues=0),
        took_ms=1.0,
        headline=headline,
    )


@pytest.mark.parametrize(
    ("message", "right"),
    [
        (LOG.error, True),
        ("LoRA rank `64` is greater than  max_lora_rank 16", True),
        ("Call to add_lora failed: LoRA rank 64 is greater than max_lora_rank 16.", True),
        ("Loading LoRA /data/adapters/a failed: no rank", True),
        ("rank 64", False),
        ("Engine core initialization failed. See root cause above.", False),
        (f"{LOG.error} {' '.join(f'and{at} more' for at in range(30))}", False),
        ("", False),
    ],
)
def test_a_message_is_right_if_it_names_a_cause_and_no_page_around_it(message: str, right: bool) -> None:
    assert is_root_cause(LOG, message) == right


def test_an_answer_is_checked_for_cause_headline_and_remedy() -> None:
    good = check_answer(
        LOG, an_answer("Engine stopped: LoRA rank 64 is greater than max_lora_rank", LOG.error)
    )
    bad = check_answer(LOG, an_answer("Unknown failure", None))

    assert (good.root_cause, good.headline, good.unrelated_remedy) == (True, True, False)
    assert (bad.root_cause, bad.headline) == (False, False)


# What is packed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = []
    for name, text in (
        ("0.8.5-a", "one"),
        ("0.32.0-a", "two"),
        ("0.32.0-b", "see /tmp/x/y"),
        ("0.8.5-c", "c"),
    ):
        (tmp_path / f"{name}.log").write_text(text, encoding="utf-8")
        version = name.partition("-")[0]
        row = {"id": name, "file": f"{name}.log", "vllm_version": version, "error": text, "expected": []}
        rows.append(json.dumps(row))
    (tmp_path / "gold.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return tmp_path


def test_of_each_failure_so_many_releases_are_packed_and_no_log_that_names_the_machine(folder: Path) -> None:
    logs = read_folder(folder, unseen=True)
    chosen = choose(logs, releases=1)

    assert [log.id.partition("-")[2] for log in chosen] == ["a", "c"]
    assert len(choose(logs, releases=9)) == 3
    assert pack(chosen) == pack(choose(logs, releases=1))


def test_the_real_logs_are_many_failures_of_many_releases_and_the_unseen_ones_are_others() -> None:
    logs = load_pinned().real_logs
    halves = [[log for log in logs if log.unseen is unseen] for unseen in (False, True)]
    known, unseen = ({failure_of(log) for log in half} for half in halves)

    assert min(len(known), len(unseen)) >= 60
    assert not known & unseen
    assert all(len({log.vllm_version for log in half}) >= 5 for half in halves)
    assert sum(bool(log.expected) for log in halves[0]) >= 30
    assert len(choose(logs, releases=99)) == len(logs)
