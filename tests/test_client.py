"""The client in one file: handed out by a server, it asks that server with the standard library alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.served import CRASH, CRASH_NUMBER, served, starter_settings
from tests.test_guide_examples import NOTHING_KNOWN


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("client")
    with served(starter_settings(folder)) as url:
        file = folder / "client.py"
        file.write_text(httpx.get(f"{url}/client.py").text, encoding="utf-8")
        yield file


def ask(client: Path, log: str, *options: str) -> tuple[int, str, str]:
    command = [sys.executable, "-I", "-S", str(client), *options]
    done = subprocess.run(command, input=log, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_it_answers_with_the_exit_code_of_the_verdict(client: Path) -> None:
    code, text, _ = ask(client, CRASH)

    assert (code, f"#{CRASH_NUMBER}" in text) == (0, True)
    assert ask(client, NOTHING_KNOWN, "--format", "json")[0] == 3


def test_what_goes_wrong_is_one_line(client: Path) -> None:
    code, _, fault = ask(client, " ")
    assert (code, fault.count("\n")) == (1, 1)
    assert ask(client, CRASH, "--url", "http://127.0.0.1:9")[0] == 1
    assert ask(client, CRASH, "--url", "file:///etc/passwd")[0] == 2
