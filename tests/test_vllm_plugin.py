"""The plugin in a process that ends: one line where TRIAGE_URL is set, nothing at all where it is not."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.command import environment_of

ROOT = Path(__file__).parents[1]
LINE = "curl -sS --data-binary @LOGFILE https://triage.example.org/\n"


def end_of(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    start = "import logging, sys; from app.vllm_plugin import register; register(); register()\n"
    environment = environment_of(**settings)
    return subprocess.run(
        [sys.executable, "-c", start + code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('Engine core initialization failed. See root cause above.')",
        "logging.getLogger('vllm.v1.engine').error('Engine core proc EngineCore_DP0 died unexpectedly')",
    ],
)
def test_an_end_by_an_error_is_followed_by_what_to_type(code: str) -> None:
    ended = end_of(code, TRIAGE_URL="https://triage.example.org")

    assert ended.stderr.endswith(LINE)
    assert ended.stderr.count("triage:") == 1
    assert ended.stdout == ""


@pytest.mark.parametrize(
    "code", ["sys.exit(1)", "raise KeyboardInterrupt", "logging.getLogger('vllm').error('x')"]
)
def test_other_ends_are_left_alone(code: str) -> None:
    assert "triage:" not in end_of(code, TRIAGE_URL="https://triage.example.org").stderr


def test_without_the_setting_nothing_is_touched_and_only_the_standard_library_loaded() -> None:
    code = (
        "print(sys.excepthook is sys.__excepthook__, logging.getLogger('vllm').handlers,"
        " sorted(name.split('.')[0] for name, module in sys.modules.items()"
        " if 'site-packages' in str(getattr(module, '__file__', '')) and not name.startswith('_')))"
    )

    assert end_of(code).stdout.startswith("True []")
    loaded = end_of("print('pydantic' in sys.modules, 'typer' in sys.modules)").stdout
    assert loaded == "False False\n"


def test_vllm_finds_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["vllm.general_plugins"] == {"triage": "app.vllm_plugin:register"}
