"""Errors that name no cause are not called the same on likeness alone."""

from __future__ import annotations

import pytest

from app.extract.facts import Facts
from app.extract.reader import read_log
from app.knowledge.caution import LATE, WRAPPED, why_not_same
from app.match.candidates import Candidate
from app.match.terms import CHANNELS, FRAME

LATE_LOG = "RuntimeError: CUDA error: an illegal memory access was encountered"
WRAPPER_LOG = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
NAMED = "INFO 04-01 12:00:00 [api_server.py:1] non-default args: {'model': 'Qwen/Qwen3-8B'}\n"


def a_candidate(*frames: str) -> Candidate:
    zero = dict.fromkeys(CHANNELS, 1.0)
    return Candidate((1, 7), zero, zero, tuple((FRAME, text, 5.0) for text in frames))


@pytest.mark.parametrize(("log", "wanted"), [(LATE_LOG, LATE), (WRAPPER_LOG, WRAPPED), ("KeyError: 'a.b'", None)])
def test_only_an_error_that_names_no_cause_is_doubted(log: str, wanted: str | None) -> None:
    assert why_not_same(read_log(log), Facts(number=7), a_candidate("worker.py:run")) == wanted


def test_the_same_model_family_takes_the_doubt_away() -> None:
    theirs = Facts(number=7, models=("Qwen2.5-72B-Instruct-AWQ",))

    assert why_not_same(read_log(NAMED + LATE_LOG), theirs, a_candidate()) is None


def test_another_model_leaves_the_doubt() -> None:
    theirs = Facts(number=7, models=("meta-llama/Llama-3.1-8B",))

    assert why_not_same(read_log(NAMED + LATE_LOG), theirs, a_candidate()) == LATE


def test_the_same_backend_takes_the_doubt_away() -> None:
    log = "INFO 04-01 12:00:00 [cuda.py:1] Using FlashInfer backend on V1 engine.\n" + LATE_LOG
    mine = read_log(log)
    assert mine.surroundings.backends["attention"]

    assert why_not_same(mine, Facts(number=7, backends={"attention": mine.surroundings.backends["attention"]}), a_candidate()) is None


def test_a_shared_kernel_takes_the_doubt_away() -> None:
    assert why_not_same(read_log(LATE_LOG), None, a_candidate("_custom_ops.py:moe_align_block_size")) is None
