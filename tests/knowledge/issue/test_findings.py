"""Figures of a slowdown, and fixes that help on some cards only, are read with the line that states them."""

from __future__ import annotations

import pytest

from app.extract.facts import ErrorFact, Facts, FailureKind, summarise
from app.knowledge.issue.findings import find_findings


def facts(kind: FailureKind) -> Facts:
    return Facts(
        number=1, is_failure=True, failure_kind=kind, error=ErrorFact(type="CUDA error", message="x")
    )


@pytest.mark.parametrize(
    ("line", "metric", "change"),
    [
        ("TTFT P99: +40% (static scale) to +52% (scale off)", "TTFT P99", "+40% to +52%"),
        ("Output throughput is 18 % lower than with the release before.", "throughput", "18 %"),
        ("Since then latency is 2.5x slower on all prompts.", "latency", "2.5x slower"),
        ("- TPOT mean: −3.1 %", "TPOT mean", "−3.1 %"),
        ("LAT P50−3.9 %−2.0 %", "LAT P50", "−3.9 %"),
    ],
)
def test_a_slowdown_has_its_figures(line: str, metric: str, change: str) -> None:
    (found,) = find_findings(f"It is slow.\n{line}\nThat is all.", facts("slowdown")).measurements
    assert (found.metric, found.change) == (metric, change)
    assert found.quote in line


@pytest.mark.parametrize(
    "line", ["Throughput on 2x A30 is fine.", "TTFT is high.", "90% of the memory is used.", "latency 5 ms"]
)
def test_what_is_no_change_of_a_metric_is_no_figure(line: str) -> None:
    assert find_findings(line, facts("slowdown")).measurements == ()


def test_only_a_slowdown_has_figures_and_its_summary_names_no_error() -> None:
    assert find_findings("TTFT P99: +40%", facts("crash")).measurements == ()
    assert "CUDA error" not in summarise(facts("slowdown"))
    assert "CUDA error" in summarise(facts("crash"))


@pytest.mark.parametrize(
    ("line", "fixed_on", "not_on"),
    [
        (
            "The fix of #123 resolved it on B200NVL and GB300, but H100 still crashes.",
            ("B200", "GB300"),
            ("H100",),
        ),
        ("Patched in 0.19.1: it works on A100; however the MI300X remains broken.", (), ()),
        ("The patch fixed it on A100, however the L40S remains broken.", ("A100",), ("L40S",)),
        ("It works on A100 but fails on H100.", (), ()),
        ("The fix did not help: it resolved nothing on A100, but H100 fails too.", (), ()),
    ],
)
def test_a_fix_may_help_on_some_cards_only(
    line: str, fixed_on: tuple[str, ...], not_on: tuple[str, ...]
) -> None:
    found = find_findings(line, facts("crash")).partial_fix
    assert (found.fixed_on if found else ()) == fixed_on
    assert (found.not_on if found else ()) == not_on


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        (
            "It hangs.\n### Suggested fix\nClose the socket before `join()` waits.\n### Logs\nno",
            "Close the socket before `join()` waits.",
        ),
        (
            "It hangs. **Proposed Fix:** Pass the device on to the loader: ```python x```",
            "Pass the device on to the loader",
        ),
        ("The suggested fix did not help, it hangs all the same as before.", None),
        ("### Suggested fix\nnone", None),
    ],
)
def test_what_a_report_proposes_is_quoted(text: str, proposal: str | None) -> None:
    assert find_findings(text, facts("hang")).proposal == proposal
