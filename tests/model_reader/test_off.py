"""Switched off, which is the default, nothing of the model reader runs or is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from app.config import load_settings
from app.errors import ConfigError
from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from app.model_reader.merge import with_reply

LOADED = "import app.main, app.server.run, app.cli, sys; print('app.model_reader.connection' in sys.modules)"


@pytest.mark.long
def test_a_server_starts_without_its_client() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_a_reply_the_rules_facts_are_the_same_object() -> None:
    reading = read_issue(IssueText(7, "Server dies", "It stops with ValueError: no blocks."))
    assert with_reply(reading, None) is reading.facts


def test_it_is_off_unless_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().reader_url is None
    monkeypatch.setenv("TRIAGE_READER_URL", "http://gpu-1:8000/v1/")
    assert load_settings().reader_url == "http://gpu-1:8000/v1"


@pytest.mark.parametrize(
    "url", ["gpu-1:8000", "ftp://gpu-1", "http://user:pass@gpu-1", "http://gpu-1/?key=1"]
)
def test_a_wrong_address_is_refused_without_repeating_it(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("TRIAGE_READER_URL", url)
    with pytest.raises(ConfigError, match="TRIAGE_READER_URL") as refused:
        load_settings()
    assert "pass" not in refused.value.message.replace("password", "")
