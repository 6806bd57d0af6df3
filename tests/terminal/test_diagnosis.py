"""`triage diagnose` on a terminal and behind a pipe: colours, widths, limits while the input streams."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from app.errors import ServerError, TriageError
from app.knowledge.diagnosis.shapes import Diagnosis
from app.remote.diagnosis import diagnose_remotely
from app.terminal.diagnosis import WIDTH_MAX, print_diagnosis
from tests.command import LIMIT, LOG, one_line, triage
from tests.web.conftest import SAME, UNKNOWN
from tests.web.injections import INJECTIONS
from tests.web.test_injections import DIAGNOSIS, with_text

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def shown(file: io.StringIO, diagnosis: object = SAME) -> str:
    print_diagnosis(diagnosis, file)  # type: ignore[arg-type]
    return file.getvalue()


def test_a_terminal_has_colours() -> None:
    text = shown(Terminal())

    assert "\x1b[1;32mSAME FAILURE 97%" in text
    assert "\x1b[32m  + --moe-backend triton" in text


@pytest.mark.parametrize(
    ("diagnosis", "first"),
    [
        (SAME.model_copy(update={"next_steps": UNKNOWN.next_steps}), "MATCHES"),
        (UNKNOWN.model_copy(update={"matches": SAME.matches}), "NEXT STEPS"),
        (SAME.model_copy(update={"next_steps": UNKNOWN.next_steps, "workarounds": ()}), "NEXT STEPS"),
    ],
    ids=["known with a remedy", "unknown", "known without a remedy"],
)
def test_steps_stand_above_matches_where_no_remedy_is_known(diagnosis: Diagnosis, first: str) -> None:
    text = shown(io.StringIO(), diagnosis)

    text = text.replace("WEAK CANDIDATES", "MATCHES")
    assert min(("MATCHES", "NEXT STEPS"), key=text.index) == first


def test_no_color_turns_them_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b[3" not in shown(Terminal())
    assert "\x1b[1;3" not in shown(Terminal())


def test_a_file_has_none() -> None:
    text = shown(io.StringIO())

    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line.isupper() and line[0] != " "] == [
        "REMEDIES",
        "FIX STATE",
        "ROOT CAUSE",
        "MATCHES",
    ]
    assert "NEXT STEPS" in shown(io.StringIO(), UNKNOWN)


@pytest.mark.parametrize(("columns", "widest"), [(60, 60), (200, WIDTH_MAX), (10, 40)])
def test_lines_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, widest: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    lines = shown(Terminal(), SAME.model_copy(update={"headline": "word " * 60})).splitlines()

    assert 30 < max(len(line) for line in lines if "word" in line) <= widest + len("\x1b[1m\x1b[0m")


@pytest.mark.parametrize("attack", INJECTIONS)
def test_no_text_moves_the_cursor_or_colours_anything(attack: str) -> None:
    text = shown(io.StringIO(), with_text(DIAGNOSIS, INJECTIONS[attack]))

    assert "".join(char for char in text if char != "\n").replace("\t", "").isprintable()


def test_on_a_terminal_text_is_the_default_and_the_format_wins(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    (tmp_path / "crash.log").write_text(LOG, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "90"}

    def on_a_terminal(*options: str) -> str:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "app.cli", "diagnose", "crash.log", *options]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=theirs, stderr=subprocess.DEVNULL
        ) as process:
            os.close(theirs)
            output = b""
            try:
                while chunk := os.read(ours, 65536):
                    output += chunk
            except OSError:  # Linux tells the end of a terminal so
                pass
            os.close(ours)
            assert process.wait(60) == 3
        return output.decode().replace("\r\n", "\n")

    assert "ROOT CAUSE" in on_a_terminal()
    assert json.loads(on_a_terminal("--format", "json"))["verdict"]


def pour(pipe: int, size_bytes: int) -> None:
    for _ in range(size_bytes // 65536):
        os.write(pipe, b"x" * 65536)


def test_a_log_over_the_limit_is_refused_before_its_end(tmp_path: Path) -> None:
    """The writer never closes the pipe."""
    ours, theirs = os.pipe()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    command = [sys.executable, "-m", "app.cli", "diagnose", "-"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdin=ours,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(ours)
        try:
            with pytest.raises(BrokenPipeError):
                pour(theirs, 2 * LIMIT)
            assert process.wait(60) == 1
        finally:
            os.close(theirs)
        assert process.stderr
        assert b"over the limit of 10 MiB" in process.stderr.read()


def test_utf_16_may_take_two_bytes_for_each(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    given = ("x" * (LIMIT - 1000 - len(LOG)) + "\n" + LOG).encode("utf-16")
    answer = triage("diagnose", "-", folder=tmp_path, given=given)

    assert len(given) > LIMIT
    assert answer.returncode == 3


def test_what_the_caller_knows_of_the_run_is_used(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    answer = triage(
        "diagnose",
        "-",
        "--gpu",
        "H200",
        "--model",
        "acme/m-7b",
        "--vllm-version",
        "0.9.1",
        folder=tmp_path,
        given=LOG.encode(),
    )
    around = json.loads(answer.stdout)["environment"]

    assert (around["gpus"], around["models"], around["versions"]["vllm"]) == (
        ["H200"],
        ["acme/m-7b"],
        "0.9.1",
    )


def test_an_event_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text("{}", encoding="utf-8")
    answer = triage("comment", "--event", "event.json", folder=tmp_path)

    assert answer.returncode == 1
    assert "GITHUB_EVENT_PATH" in one_line(answer)


def asked(handler: httpx.MockTransport) -> str:
    with pytest.raises(TriageError) as refused:
        diagnose_remotely("https://triage.example.org", LOG, transport=handler)
    assert isinstance(refused.value, ServerError)
    assert "\n" not in refused.value.message
    return refused.value.message


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.ConnectTimeout("x"), "no connection within 10 s"),
        (httpx.ReadTimeout("x"), "nothing within 60 s"),
        (httpx.ConnectError("x"), "is the server running there?"),
        (
            httpx.Response(429, json={"detail": "Too many requests."}, headers={"retry-after": "7"}),
            "Try again in 7 s.",
        ),
        (
            httpx.Response(301, headers={"location": "https://new.example.org/"}),
            "has moved: ask https://new.example.org/",
        ),
        (httpx.Response(502, text="bad gateway"), "refused with 502: Bad Gateway"),
        (httpx.Response(200, text="<html>"), "answered no diagnosis"),
    ],
)
def test_a_server_that_fails_is_told_in_one_line(answer: httpx.Response | Exception, said: str) -> None:
    def handle(_: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert said in asked(httpx.MockTransport(handle))


def test_a_remote_question_holds_what_was_given_and_nothing_else() -> None:
    seen: list[dict[str, object]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(200, text=SAME.model_dump_json())

    for more in ({}, {"gpu": "H100", "exclude": frozenset({7})}):
        diagnose_remotely("https://triage.example.org/", LOG, transport=httpx.MockTransport(handle), **more)  # type: ignore[arg-type]
    assert seen == [{"log": LOG}, {"log": LOG, "gpu": "H100", "exclude": [7]}]
