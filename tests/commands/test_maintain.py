"""`triage backup`, `restore`, `copy`, `doctor` as a person runs them, and who may write an older schema."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from app import cli
from app.store.session import Store
from app.terminal import events
from tests.postgresql import PostgreSQL
from tests.samples import REPO
from tests.store.conftest import fill


@dataclass
class Ended:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


Triage = Callable[..., Ended]


def one_line(ended: Ended) -> str:
    output = ended.stderr.strip()
    assert "\n" not in output, output
    return output


@pytest.fixture
def triage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Triage:
    """Runs a command in this process: a new one takes seconds to load."""
    monkeypatch.setattr(events, "set_up_logging", lambda: None)
    monkeypatch.chdir(tmp_path)

    def run(*told: str, **settings: str) -> Ended:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["triage", *told])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output = capsys.readouterr()
        return Ended(int(ended.value.code or 0), output.out, output.err)

    return run


@pytest.fixture
def url(sqlite_store: Store) -> str:
    fill(sqlite_store)
    sqlite_store.close()
    return str(sqlite_store.engine.url)


def test_a_base_is_backed_up_and_put_back(triage: Triage, url: str) -> None:
    made = triage("backup", "base.backup", TRIAGE_DATABASE_URL=url)
    assert (made.returncode, made.stdout) == (0, "")
    assert "rows" in one_line(made)
    again = triage("backup", "base.backup", TRIAGE_DATABASE_URL=url)
    assert (again.returncode, "--force" in one_line(again)) == (1, True)

    refused = triage("restore", "base.backup", TRIAGE_DATABASE_URL=url)
    assert (refused.returncode, "--force" in one_line(refused)) == (1, True)
    done = triage("restore", "base.backup", "--force", TRIAGE_DATABASE_URL=url)
    assert (done.returncode, "is kept as" in done.stderr) == (0, True)


def test_what_was_taken_down_for_good_does_not_come_back_with_an_old_backup(triage: Triage, url: str) -> None:
    triage("backup", "base.backup", TRIAGE_DATABASE_URL=url)
    assert triage("forget", "11", "--keep-out", TRIAGE_REPO=REPO).returncode == 0

    done = triage("restore", "base.backup", "--force")
    assert "1 issue that the replaced database kept out: taken down here too" in done.stderr
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        row = connection.execute("SELECT title, body FROM issue WHERE number = 11").fetchone()
    assert row == ("taken down", "")


def test_a_base_is_copied_to_the_other_engine_and_back(
    triage: Triage, url: str, tmp_path: Path, postgresql: PostgreSQL
) -> None:
    server = postgresql.new_database()
    there = triage("copy", "--from", url, "--to", server)
    assert (there.returncode, "row counts agree" in there.stderr) == (0, True)
    again = triage("copy", "--from", url, "--to", server)
    assert (again.returncode, "has rows; name an empty database" in one_line(again)) == (1, True)
    back = triage("copy", "--from", server, "--to", "sqlite:///back.db")
    assert (back.returncode, (tmp_path / "back.db").exists()) == (0, True)


@pytest.mark.parametrize(
    ("told", "word"),
    [(("mysql://x/y", "sqlite:///b.db"), "--from"), (("sqlite:///no.db", "sqlite:///b.db"), "no file")],
)
def test_addresses_that_cannot_be_copied_are_wrong_usage(
    triage: Triage, told: tuple[str, str], word: str, tmp_path: Path
) -> None:
    answer = triage("copy", "--from", told[0], "--to", told[1])

    assert (answer.returncode, word in one_line(answer)) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_leaves_with_0_for_a_sound_base_and_with_1_for_another(triage: Triage, url: str) -> None:
    sound = triage("doctor", TRIAGE_DATABASE_URL=url)
    assert (sound.returncode, json.loads(sound.stdout)["is_sound"]) == (0, True)

    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE term SET df = df + 1")
    connection.close()
    ill = triage("doctor", "--format", "text", TRIAGE_DATABASE_URL=url)
    assert (ill.returncode, "FAULT  search index:" in ill.stdout) == (1, True)
    assert "triage reextract" in ill.stdout
    assert ill.stdout.rstrip().endswith("1 fault, 2 pieces of advice")


@pytest.mark.parametrize("command", [("sync",), ("import", "-"), ("reextract",), ("status",), ("serve",)])
def test_a_base_of_an_older_schema_is_not_written_and_sent_to_migrate(
    triage: Triage, url: str, command: tuple[str, ...]
) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '20261121_first_tables'")
    connection.close()
    answer = triage(*command, TRIAGE_DATABASE_URL=url)

    assert (answer.returncode, "run `triage migrate`" in one_line(answer)) == (1, True)
