"""The same crash on another machine: what must change does, what tells the failure stays."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks.rewrite import FORMS, MACHINE_FORMS, Dice, first_traceback, rewrite
from tests.samples import a_traceback, marlin_log

ERROR = "ValueError: Weight output_size_per_partition"
LOG = "\n".join(
    [
        "jane@box17:~/work$ vllm serve org/m-7b",
        "INFO 02-03 04:05:06 api_server.py:219] port 8000, peer 192.168.4.5:51234, local 127.0.0.1, torch==2.5.1.0",
        "(VllmWorkerProcess pid=4242) ERROR 02-03 04:05:07 [worker.py:20] pid=4242 on cuda:3 of rank 3 at 0x7f00aa11bb22",
        "2026-01-02T03:04:05.678 engine a1b2c3d4-0000-4444-8888-0123456789ab left 17.25 GiB, /home/jane/models/m-7b",
        a_traceback(
            "RuntimeError: shapes do not agree",
            "vllm/model.py:forward",
            site="/home/jane/env/lib/python3.10/site-packages",
            line=500,
        ),
    ]
)


def test_a_rewrite_is_the_same_every_time() -> None:
    assert [rewrite(LOG, 7, form) for form in FORMS] == [rewrite(LOG, 7, form) for form in FORMS]


def test_two_seeds_are_two_machines() -> None:
    assert rewrite(LOG, 7, "whole") != rewrite(LOG, 8, "whole")


@pytest.mark.parametrize(
    "own",
    [
        "jane@box17",
        "/home/jane",
        "02-03",
        "04:05:06",
        "port 8000",
        "192.168.4.5",
        "51234",
        "4242",
        "cuda:3",
        "0x7f00aa11bb22",
        "2026-01-02",
        "03:04:05",
        "a1b2c3d4",
        "17.25",
        'python3.10/site-packages/vllm/model.py", line 500',
    ],
)
def test_what_belongs_to_a_machine_is_changed(own: str) -> None:
    seen = [rewrite(LOG, seed, "whole") for seed in range(3)]

    assert own in LOG
    assert sum(own in text for text in seen) <= 1  # one of eight ranks or five machines may be drawn again


@pytest.mark.parametrize(
    "kept",
    [
        "RuntimeError: shapes do not agree",
        "vllm/model.py",
        "in forward",
        "127.0.0.1",
        "torch==2.5.1.0",
        "org/m-7b",
        "models/m-7b",
    ],
)
def test_what_tells_the_failure_stays(kept: str) -> None:
    assert kept in rewrite(LOG, 7, "whole")


def test_equal_values_stay_equal() -> None:
    found = re.findall(r"pid=(\d+)", rewrite(LOG, 7, "whole"))

    assert len(found) == 2
    assert len(set(found)) == 1


@pytest.mark.parametrize("form", MACHINE_FORMS)
@pytest.mark.parametrize("seed", range(6))
def test_each_form_keeps_the_error(form: str, seed: int) -> None:
    assert "shapes do not agree" in rewrite(LOG, seed, form)


def test_kubernetes_times_go_on() -> None:
    stamps = [line.split(" ")[0] for line in rewrite(LOG, 3, "kubernetes").splitlines()]

    assert stamps == sorted(stamps)


@pytest.mark.parametrize("seed", range(40))
def test_a_server_of_today_tells_the_error_unless_only_its_tail_is_left(seed: int) -> None:
    text = rewrite(marlin_log(), seed, "cascade")

    assert ERROR in text or len(text.splitlines()) <= 80
    assert "pid=" in text


def test_a_log_without_a_traceback_has_no_cascade() -> None:
    assert rewrite("INFO all is well\nBye\n", 1, "cascade") == ""


def test_the_first_traceback_is_told_with_what_is_chained_to_it_and_nothing_after() -> None:
    one = a_traceback("KeyError: 'a'", "vllm/a.py:f")
    two = a_traceback("ValueError: no a", "vllm/b.py:g")
    lines = [
        "noise",
        *one.splitlines(),
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        *two.splitlines(),
        "INFO bye",
    ]

    assert first_traceback(lines)[-1] == "ValueError: no a"
    assert first_traceback(lines)[0].startswith("Traceback")


@pytest.mark.parametrize(
    "head",
    [
        "vllm-1  | ",
        "2026-01-02 03:04:05 ",
        "(Worker pid=3) ERROR 01-02 03:04:05 [w.py:3] ",
        "      ",
        "[rank0]: ",
    ],
)
def test_a_traceback_is_found_behind_prefixes(head: str) -> None:
    found = a_traceback("KeyError: 'a'", "vllm/a.py:f").splitlines()

    assert first_traceback([head + line for line in found]) == found


def test_dice_fall_alike_everywhere() -> None:
    dice = Dice(1, "x")

    assert [dice.below(1000) for _ in range(4)] == [754, 927, 221, 552]
