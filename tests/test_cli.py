"""The commands as a person meets them: bad input gets one clear line and a fitting exit code."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest

from app.store.schema import migrate
from app.store.session import open_store
from tests.command import LIMIT, LOG, environment_of, one_line, triage, triage_process
from tests.loopback import free_port


def test_an_unknown_command_is_wrong_usage(tmp_path: Path) -> None:
    answer = triage_process("frobnicate", folder=tmp_path)
    assert answer.returncode == 2
    assert b"frobnicate" in answer.stderr


def test_an_unknown_flag_is_wrong_usage(tmp_path: Path) -> None:
    answer = triage("diagnose", "--frobnicate", folder=tmp_path)
    assert answer.returncode == 2
    assert b"--frobnicate" in answer.stderr


def test_a_wrong_format_is_answered_with_those_there_are(tmp_path: Path) -> None:
    answer = triage("diagnose", "--format", "yaml", folder=tmp_path)
    assert answer.returncode == 2
    assert b"Invalid value for '--format': 'yaml' is not one of 'text', 'json', 'markdown'." in answer.stderr


def test_a_missing_log_file_is_named(tmp_path: Path) -> None:
    answer = triage("diagnose", "nowhere.log", folder=tmp_path)
    assert answer.returncode == 1
    assert "nowhere.log" in one_line(answer)


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    answer = triage("diagnose", "-", folder=tmp_path, given=b"  \n\n")
    assert answer.returncode == 1
    assert "empty" in one_line(answer)


def test_a_log_over_the_limit_is_refused(tmp_path: Path) -> None:
    answer = triage("diagnose", "-", folder=tmp_path, given=b"x" * (LIMIT + 1))
    assert answer.returncode == 1
    assert "limit" in one_line(answer)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(bytes(range(256)) * 64)
    answer = triage("diagnose", "core", folder=tmp_path)
    assert answer.returncode == 1
    assert "not text" in one_line(answer)


def test_an_import_of_what_is_no_json_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are not\nthe issues\n", encoding="utf-8")
    answer = triage("import", "notes.txt", folder=tmp_path)
    assert answer.returncode == 1
    assert b"notes.txt" in answer.stderr
    assert b"Traceback" not in answer.stderr
    with closing(sqlite3.connect(tmp_path / "triage.db")) as base:
        assert base.execute("select count(*) from issue").fetchone() == (0,)


def test_an_import_of_a_missing_file_is_one_line(tmp_path: Path) -> None:
    answer = triage("import", "nowhere.jsonl", folder=tmp_path)
    assert answer.returncode == 1
    assert "nowhere.jsonl" in one_line(answer)
    assert not (tmp_path / "triage.db").exists()


def test_an_import_says_that_it_made_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "issues.jsonl").write_text(json.dumps(ISSUE), encoding="utf-8")
    answers = [triage("import", "issues.jsonl", folder=tmp_path) for _ in range(2)]
    assert [b"a new one is made there" in answer.stderr for answer in answers] == [True, False]


def test_a_wrong_name_of_a_setting_is_told_whatever_the_log_is(tmp_path: Path) -> None:
    answer = triage("diagnose", "-", folder=tmp_path, given=b"", TRIAGE_FOO="1")
    assert answer.returncode == 1
    assert b"TRIAGE_FOO is no setting: see `triage config`" in answer.stderr


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "triage.db")) as base, base:
        base.execute("update alembic_version set version_num = '29990101_from_the_future'")
    for command in (["migrate"], ["diagnose", "-"], ["serve", "--port", str(free_port())], ["sync"]):
        answer = triage(*command, folder=tmp_path, given=LOG.encode())
        assert answer.returncode == 1
        assert "newer version" in one_line(answer)


@pytest.mark.parametrize(
    "command",
    [["diagnose"], ["report", "7"], ["status"], ["digest"], ["serve"], ["backup", "x"], ["reextract"]],
)
def test_without_a_database_a_reader_says_how_to_have_one_and_makes_none(
    tmp_path: Path, command: list[str]
) -> None:
    port = ["--port", str(free_port())] if command == ["serve"] else []
    answer = triage(*command, *port, folder=tmp_path, given=LOG.encode())
    assert answer.returncode == 2
    assert "`triage up` makes" in one_line(answer)
    assert list(tmp_path.iterdir()) == []


def test_the_base_lies_in_the_platforms_folder_unless_the_working_folder_has_one(tmp_path: Path) -> None:
    here, data = tmp_path / "here", tmp_path / "data"
    here.mkdir()
    found = {"XDG_DATA_HOME": str(data), "HOME": str(tmp_path)}
    with patch.dict("tests.command.OURS", clear=True):
        assert triage("migrate", folder=here, **found).returncode == 0
        assert [path.name for path in tmp_path.rglob("triage.db")] == ["triage.db"]
        assert (
            triage(
                "migrate", "--database", f"sqlite:///{here}/triage.db", folder=tmp_path, **found
            ).returncode
            == 0
        )
        answer = triage("status", folder=here, **found)
    assert answer.returncode == 0
    assert "of this folder" in one_line(answer)


def test_a_variable_that_is_no_setting_is_named_with_the_nearest(tmp_path: Path) -> None:
    answer = triage("config", folder=tmp_path, TRIAGE_GITHUB_TOKE="x", TRIAGE_ADMIN_TOKEN="a-secret-word")
    assert "TRIAGE_GITHUB_TOKE is no setting; did you mean TRIAGE_GITHUB_TOKEN?" in one_line(answer)
    output = answer.stdout.decode()
    assert "TRIAGE_ADMIN_TOKEN=…  # environment" in output
    assert "TRIAGE_KEEP_DAYS=30  # default" in output
    assert "a-secret-word" not in output


def test_help_is_short_has_groups_and_may_be_cut(tmp_path: Path) -> None:
    found = triage("-h", folder=tmp_path, COLUMNS="50").stdout.decode()
    assert max(map(len, found.splitlines())) <= 50
    assert [line for line in found.splitlines() if line.endswith(":") and line[0] != " "] == [
        "Options:",
        "Answers:",
        "Server:",
        "Data:",
        "Upkeep:",
    ]
    command = f"set -o pipefail; {sys.executable} -m app.cli --help | head -1"
    cut = subprocess.run(["bash", "-c", command], env=environment_of(), cwd=tmp_path, timeout=60, check=False)
    assert cut.returncode == 0


def test_the_entry_point_loads_nothing_that_only_a_command_needs() -> None:
    code = (
        "import app.cli, sys; print(sorted({'pydantic', 'numpy', 'sqlalchemy', 'jinja2'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded == "[]\n"


def test_a_place_below_a_plain_file_cannot_hold_the_database(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    url = f"sqlite:///{tmp_path}/file/triage.db"
    answer = triage("migrate", folder=tmp_path, TRIAGE_DATABASE_URL=url)
    assert answer.returncode == 1
    assert "folder" in one_line(answer)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIAGE_DATABASE_URL", "mysql://u:p4ssw0rd@h/d"),
        ("TRIAGE_REPO", "not a repo"),
        ("TRIAGE_KEEP_DAYS", "many"),
        ("TRIAGE_PUBLIC_HOSTS", "https://triage.example.org/"),
        ("TRIAGE_GITHUB_API_URL", "ftp://x"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_repeated(
    tmp_path: Path, name: str, value: str
) -> None:
    answer = triage("migrate", folder=tmp_path, **{name: value})
    assert answer.returncode == 2
    assert name in one_line(answer)
    assert value not in answer.stderr.decode()


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = triage("up", "--port", str(taken.getsockname()[1]), folder=tmp_path)
    assert answer.returncode == 2
    assert "in use" in one_line(answer)
    assert not (tmp_path / "triage.db").exists()


def test_extract_writes_a_line_for_each_issue_and_names_the_line_that_is_none(tmp_path: Path) -> None:
    given = b'{"number": 7, "title": "[Bug]: ValueError: no memory", "body": ""}\nnot json\n{"title": "x"}\n'
    answer = triage("extract", "-", folder=tmp_path, given=given)
    assert answer.returncode == 1
    assert [json.loads(line)["number"] for line in answer.stdout.splitlines()] == [7]
    assert b"stdin:2:" in answer.stderr
    assert b"stdin:3:" in answer.stderr


ISSUE = {
    "number": 7,
    "title": "[Bug]: it hangs on an A100",
    "body": "On vLLM 0.9.1.",
    "state": "open",
    "created_at": "2026-04-08T09:00:00Z",
    "updated_at": "2026-04-08T09:00:00Z",
    "html_url": "https://github.com/vllm-project/vllm/issues/7",
}


@pytest.fixture
def reread(tmp_path: Path) -> Path:
    """A folder with a base whose one issue was read by rules that found another GPU."""
    (tmp_path / "issues.jsonl").write_text(json.dumps(ISSUE), encoding="utf-8")
    assert triage("import", "issues.jsonl", folder=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "triage.db")) as base, base:
        base.execute(
            "update reading set rules_version = 'old', facts = json_set(facts, '$.gpus', json_array('L4'))"
        )
    return tmp_path


def dump_of(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "triage.db")) as base:
        return list(base.iterdump())


def test_reextract_diff_tells_each_field_and_writes_nothing(reread: Path) -> None:
    before = dump_of(reread)
    answer = triage("reextract", "--diff", folder=reread)
    assert answer.returncode == 0
    assert "~ gpus #7 L4 -> A100" in answer.stdout.decode().splitlines()
    assert dump_of(reread) == before


def test_reextract_diff_answers_json_too(reread: Path) -> None:
    answer = triage("reextract", "--diff", "--format", "json", "--examples", "0", folder=reread)
    (diff,) = json.loads(answer.stdout)["repositories"].values()
    gpus = next(item for item in diff["fields"] if item["field"] == "gpus")
    assert gpus == {
        "field": "gpus",
        "before": 1,
        "after": 1,
        "added": 0,
        "removed": 0,
        "changed": 1,
        "examples": [],
    }
    assert (diff["compared"], diff["differing"], diff["stored_rules"]) == (1, 1, {"old": 1})


def test_after_reextract_there_is_no_difference(reread: Path) -> None:
    answer = triage("reextract", folder=reread)
    assert answer.returncode == 0
    assert one_line(answer) == "vllm-project/vllm: 1 read again, 0 could not be read"
    diff = json.loads(triage("reextract", "--diff", "--format", "json", folder=reread).stdout)
    assert diff["repositories"]["vllm-project/vllm"]["differing"] == 0


def test_reextract_diff_of_an_older_base_says_to_migrate(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/triage.db")) as store:
        migrate(store)
        migrate(store, "base")
        migrate(store, "20261121_first_tables")
    answer = triage("reextract", "--diff", folder=tmp_path)
    assert answer.returncode == 1
    assert "triage migrate" in one_line(answer)


def test_diagnose_answers_json_in_a_pipe_and_tells_by_its_exit_code(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    answer = triage_process("diagnose", "-", folder=tmp_path, given=LOG.encode())
    found = json.loads(answer.stdout)
    assert answer.returncode == (0 if found["verdict"] in {"same", "likely"} else 3)
    assert found["root_cause"]["message"] == "No available memory for the cache blocks."


@pytest.mark.parametrize("shape", ["text", "markdown"])
def test_diagnose_answers_in_the_format_asked_for(tmp_path: Path, shape: str) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    answer = triage("diagnose", "-", "--format", shape, folder=tmp_path, given=LOG.encode())
    assert answer.returncode == 3
    words = b" ".join(answer.stdout.replace(b"\\", b"").split())
    assert b"No available memory for the cache blocks." in words


def test_a_packed_log_is_read(tmp_path: Path) -> None:
    assert triage("migrate", folder=tmp_path).returncode == 0
    (tmp_path / "crash.log.gz").write_bytes(gzip.compress(LOG.encode()))
    answer = triage("diagnose", "crash.log.gz", folder=tmp_path)
    assert "No available memory" in json.loads(answer.stdout)["headline"]


def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    answer = triage("diagnose", "-", "--url", "http://127.0.0.1:9", folder=tmp_path, given=LOG.encode())
    assert answer.returncode == 1
    assert "does not answer" in one_line(answer)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """`triage up` in an empty folder, with a GitHub that cannot be reached."""
    folder = tmp_path_factory.mktemp("up")
    port = free_port()
    said = folder / "said.txt"
    with said.open("wb") as errors:
        server = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "up", "--port", str(port)],
            cwd=folder,
            env=environment_of(),
            stderr=errors,
            stdout=subprocess.DEVNULL,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                if httpx.get(address + "/readyz", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield address, server, said
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=20)


def test_up_serves_the_starter_set(started: tuple[str, subprocess.Popen[bytes], Path]) -> None:
    address, _, output = started
    assert httpx.get(address + "/").status_code == 200
    answer = httpx.post(address + "/api/v1/diagnose", json={"log": LOG}).json()
    assert answer["index"]["issues"] >= 30
    assert "starter set" in output.read_text()


def test_up_says_that_it_made_a_new_database(started: tuple[str, subprocess.Popen[bytes], Path]) -> None:
    _, _, output = started
    assert "no database was at sqlite:///triage.db: a new one is made there" in output.read_text()


@pytest.mark.long
def test_up_says_that_github_was_not_reached(started: tuple[str, subprocess.Popen[bytes], Path]) -> None:
    _, server, output = started
    for _ in range(200):
        if "could not be reached" in output.read_text():
            break
        time.sleep(0.1)
    assert "GitHub could not be reached" in output.read_text()
    assert server.poll() is None


def test_the_command_asks_a_running_server(started: tuple[str, subprocess.Popen[bytes], Path]) -> None:
    address, _, output = started
    answer = triage("diagnose", "-", "--url", address, folder=output.parent, given=LOG.encode())
    assert json.loads(answer.stdout)["index"]["issues"] >= 30
