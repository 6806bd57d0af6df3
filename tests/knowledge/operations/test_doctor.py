"""What `triage doctor` finds: nothing in a sound base, each fault by its name and with its remedy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from sqlalchemy import text

from app.config import Settings
from app.knowledge.operations.doctor import Examination, examine
from app.store.backup.backup import back_up, restore
from app.store.session import Store
from tests.samples import REPO
from tests.store.conftest import contents, fill

TOKEN = "ghs_notARealToken0123456789"


def settings_of(store: Store, **more: object) -> Settings:
    url = store.engine.url.render_as_string(hide_password=False)
    return Settings(database_url=url, repo=(REPO,), github_token=TOKEN, _env_file=None, **more)  # type: ignore[arg-type]


@pytest.fixture
def full(store: Store) -> Store:
    fill(store)
    if store.engine.name == "sqlite":
        Path(store.engine.url.database or "").chmod(0o600)
    return store


def run(store: Store, statement: str) -> None:
    with store.unit_of_work() as session:
        session.connection().execute(text(statement))


def faults(found: Examination) -> set[str]:
    return {finding.thing for finding in found.findings if finding.level == "fault"}


def test_a_sound_base_has_no_fault(full: Store) -> None:
    found = examine(settings_of(full))

    assert (found.is_sound, faults(found)) == (True, set())
    assert {"schema", "index:"} <= {item.split()[0] for item in found.looked_at}
    assert found.looked_at[0].startswith(("SQLite 3.", "PostgreSQL 1"))


def test_looking_changes_nothing(full: Store) -> None:
    before = contents(full)
    examine(settings_of(full))

    assert contents(full) == before


@pytest.mark.parametrize(
    "empty_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
def test_what_a_backup_restores_is_sound(full: Store, tmp_path: Path, empty_url: str) -> None:
    back_up(full, tmp_path / "backup")
    restore(tmp_path / "backup", empty_url)

    found = examine(Settings(database_url=empty_url, repo=(REPO,), github_token=TOKEN, _env_file=None))  # type: ignore[arg-type, call-arg]
    assert found.is_sound, found


@pytest.mark.parametrize(
    ("harm", "thing", "fault"),
    [
        ("UPDATE term SET df = df + 1", "search index", "have a wrong number of issues"),
        ("DELETE FROM posting WHERE number = 11", "search index", "have a wrong number of issues"),
        ("UPDATE posting SET number = 4711 WHERE number = 12", "search index", "lead to no issue"),
        ("DELETE FROM cluster", "clusters", "in a cluster that is not there"),
        (
            "UPDATE sync_run SET outcome = 'failed', fault = 'GitHub refused: 401'",
            REPO,
            "the last sync failed: GitHub refused: 401",
        ),
        (
            "UPDATE alembic_version SET version_num = '20261121_first_tables'",
            "schema",
            "run `triage migrate`",
        ),
    ],
)
def test_each_harm_is_found_and_told_with_its_remedy(full: Store, harm: str, thing: str, fault: str) -> None:
    with full.reading() as session:
        newest = session.connection().execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        run(
            full,
            f"INSERT INTO cluster_member (repo_id, number, cluster_id, traits) SELECT 1, 900, 's1-0', '{{}}' WHERE {int(thing == 'clusters')} = 1",
        )
    run(full, harm)
    found = examine(settings_of(full))
    run(full, f"UPDATE alembic_version SET version_num = '{newest}'")

    assert not found.is_sound
    answer = [finding for finding in found.findings if finding.thing == thing and finding.level == "fault"]
    assert any(fault in finding.fault for finding in answer), found
    assert all(finding.do for finding in answer)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("DELETE FROM reading WHERE number = 11", "1 issues are not read"),
        ("UPDATE reading SET rules_version = 'old'", "or were read by older rules"),
        ("DELETE FROM pair_view WHERE number IN (11, 12)", "2 issues cannot be compared"),
        ("DELETE FROM cluster_member", "3 issues report a failure and are in no cluster"),
        ("UPDATE sync_run SET outcome = 'killed'", "the last sync ended before all was stored (killed)"),
        (
            "UPDATE sync_run SET outcome = 'running', ended_at = NULL",
            "the last sync ended before all was stored (killed)",
        ),
    ],
)
def test_what_the_next_sync_makes_good_is_an_advice(full: Store, harm: str, told: str) -> None:
    run(
        full,
        "UPDATE reading SET read_at = read_at + INTERVAL '1 day'"
        if full.engine.name != "sqlite"
        else "SELECT 1",
    )
    run(full, harm)
    found = examine(settings_of(full))

    assert found.is_sound
    assert any(told in finding.fault for finding in found.findings), found


def test_a_base_of_which_nothing_is_read_has_a_fault(full: Store) -> None:
    run(full, "DELETE FROM reading")
    found = examine(settings_of(full))

    assert any("issues are not read" in one.fault and one.level == "fault" for one in found.findings), found


def test_a_base_that_was_never_synced_and_holds_no_releases_is_advised_to_sync(full: Store) -> None:
    for table in ("sync_run", "release_pull", "release", "pull_request"):
        run(full, f"DELETE FROM {table}")
    found = examine(settings_of(full))
    told = {finding.fault.split(":")[0]: finding for finding in found.findings}

    assert found.is_sound
    for fault in ("it was never synced", "no releases and no pull requests are stored"):
        assert (told[fault].level, "`triage sync`" in told[fault].do) == ("advice", True)


def test_a_large_table_that_postgresql_never_looked_at_is_told(postgresql_store: Store) -> None:
    table = "CREATE TABLE never_looked_at AS SELECT repeat('x', 2000) AS told FROM generate_series(1, 600)"
    try:
        run(postgresql_store, table)
        before = examine(settings_of(postgresql_store))
        run(postgresql_store, "ANALYZE never_looked_at")
        after = examine(settings_of(postgresql_store))
    finally:
        run(postgresql_store, "DROP TABLE never_looked_at")

    assert [item.level for item in before.findings if "never_looked_at" in item.fault] == ["advice"]
    assert not any("never_looked_at" in item.fault for item in after.findings)


def test_a_stale_base_and_logs_past_their_time_are_told(full: Store) -> None:
    with time_machine.travel(datetime.now(UTC) + timedelta(days=5)):
        found = examine(settings_of(full))

    assert {"no sync was complete for 24 hours", "1 have expired"} <= {item.fault for item in found.findings}


def test_a_missing_token_and_a_repository_without_rows_are_told(full: Store) -> None:
    settings = settings_of(full).model_copy(update={"github_token": None, "repo": (REPO, "other/engine")})

    assert {("advice", "TRIAGE_GITHUB_TOKEN"), ("advice", "other/engine")} <= {
        (finding.level, finding.thing) for finding in examine(settings).findings
    }


def test_a_base_that_is_not_there_is_a_fault_and_not_made(tmp_path: Path) -> None:
    file = tmp_path / "nothing.db"
    found = examine(Settings(database_url=f"sqlite:///{file}", _env_file=None))  # type: ignore[call-arg]

    assert (faults(found), file.exists()) == ({"database"}, False)


def test_a_damaged_file_is_a_fault_that_names_the_way_back(sqlite_store: Store) -> None:
    fill(sqlite_store, issues=10)
    sqlite_store.close()
    path = Path(sqlite_store.engine.url.database or "")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xee" * 4096 * 10)
    found = examine(settings_of(sqlite_store))

    assert not found.is_sound
    assert any("triage restore" in finding.fault + finding.do for finding in found.findings)


def test_a_file_that_cannot_be_written_or_that_all_may_write_is_a_fault(sqlite_store: Store) -> None:
    fill(sqlite_store)
    path = Path(sqlite_store.engine.url.database or "")
    read_only = settings_of(sqlite_store).model_copy(
        update={"database_url": f"sqlite:///file:{path}?mode=ro&uri=true"}
    )
    sqlite_store.close()

    assert "database file" in faults(examine(read_only))
    path.chmod(0o666)
    assert "every user of this machine may write it" in {
        item.fault for item in examine(settings_of(sqlite_store)).findings
    }


def test_a_disk_that_is_nearly_full_is_a_fault(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "app.store.engine.health.shutil.disk_usage", lambda _: type("Usage", (), {"free": 5 << 20})()
    )

    assert "disk" in faults(examine(settings_of(sqlite_store)))
