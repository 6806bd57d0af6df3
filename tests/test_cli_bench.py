"""The command as a person meets it."""

from __future__ import annotations

from pathlib import Path

from tests.command import triage


def test_an_empty_base_is_one_clear_line(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    answer = triage("bench", "diagnose", folder=tmp_path)

    assert answer.returncode == 1
    assert answer.stdout == b""
    assert (
        answer.stderr.decode()
        .strip()
        .splitlines()[-1]
        .startswith("triage: no issue of vllm-project/vllm is stored")
    )


def test_the_help_names_the_options(tmp_path: Path) -> None:
    found = triage(
        "bench", "diagnose", "--help", folder=tmp_path, COLUMNS="100", NO_COLOR="1"
    ).stdout.decode()

    assert "--json" in found
