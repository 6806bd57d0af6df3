"""What all rooms' tests share: an archive on each engine, the shared folder, a sample of the long tests."""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from pwd import getpwnam

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.store.schema import migrate
from app.store.session import Store, open_store
from app.store.tables import metadata

ENGINES = ("sqlite", "postgresql")
LONG_SHARE = 0.34
"""How many of the tests marked `long` a sample holds; three commits see nearly all of them."""
_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 20.0

# The first example of a property test compiles patterns and lists; a deadline would time that.
hypothesis_settings.register_profile(
    "triage", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
hypothesis_settings.load_profile("triage")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long-sample", metavar="SEED", help="of the tests marked long, run a sample chosen by SEED")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--long-sample")
    if seed is None:
        return
    long = sorted((item for item in items if item.get_closest_marker("long")), key=lambda item: item.nodeid)
    kept = set(random.Random(seed).sample(long, k=math.ceil(len(long) * LONG_SHARE)))
    dropped = [item for item in long if item not in kept]
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=dropped)


@dataclass
class PostgreSQL:
    """A server of this test session, reached by a socket in its own folder."""

    folder: Path
    names: Iterator[int] = field(default_factory=count)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://triage@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"empty_{next(self.names)}"
        admin = open_store(self.url("postgres"))
        with admin.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE template0"))
        admin.close()
        return self.url(name)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """PostgreSQL from the installed binaries, as an unprivileged user, without syncing to disk."""
    binaries = _find_binaries()
    if binaries is None:
        reason = "no PostgreSQL binaries in /usr/lib/postgresql or on the PATH"
        if os.environ.get("CI"):
            pytest.fail(f"{reason}; install Debian's package postgresql")
        pytest.skip(reason)
    user = _unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="triage-pg-"))
    if user is not None:
        os.chown(folder, getpwnam(user).pw_uid, getpwnam(user).pw_gid)
    identity = {"user": user, "group": getpwnam(user).pw_gid, "extra_groups": []} if user else {}
    data = folder / "data"
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "triage", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"],
        check=True, capture_output=True, cwd=folder, **identity,
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                binaries / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off",
                "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "logging_collector=off",
            ],
            stdout=subprocess.DEVNULL, stderr=log, cwd=folder, **identity,
        )  # fmt: skip
    try:
        found = PostgreSQL(folder)
        _wait_until_up(server, found)
        yield found
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _find_binaries() -> Path | None:
    installed = sorted(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        key=lambda path: [int(part) for part in path.parent.name.split(".") if part.isdigit()],
    )
    if installed:
        return installed[-1]
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root; None where we are somebody else already."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            getpwnam(name)
        except KeyError:
            continue
        return name
    pytest.fail("running as root, and there is neither a user postgres nor nobody")


def _wait_until_up(server: subprocess.Popen[bytes], found: PostgreSQL) -> None:
    store = open_store(found.url("postgres"))
    until = time.monotonic() + _START_TIMEOUT_S
    try:
        while True:
            try:
                with store.engine.connect():
                    return
            except DBAPIError:
                if server.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"PostgreSQL did not start: {(found.folder / 'log').read_text()[-500:]}")
                time.sleep(0.05)
    finally:
        store.close()


@pytest.fixture(scope="session")
def _migrated_postgresql(postgresql: PostgreSQL) -> str:
    url = postgresql.new_database()
    store = open_store(url)
    migrate(store)
    store.close()
    return url


@pytest.fixture(scope="session")
def _migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "triage.db"
    store = open_store(f"sqlite:///{path}")
    migrate(store)
    store.close()
    return path


def _empty(store: Store) -> None:
    tables = ", ".join(f'"{table.name}"' for table in metadata.sorted_tables)
    with store.engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY CASCADE"))


@pytest.fixture
def sqlite_store(tmp_path: Path, _migrated_sqlite: Path) -> Iterator[Store]:
    """A migrated, empty archive in a SQLite file."""
    path = tmp_path / "triage.db"
    shutil.copyfile(_migrated_sqlite, path)
    store = open_store(f"sqlite:///{path}")
    yield store
    store.close()


@pytest.fixture
def postgresql_store(_migrated_postgresql: str) -> Iterator[Store]:
    """A migrated, empty archive in PostgreSQL."""
    store = open_store(_migrated_postgresql)
    _empty(store)
    yield store
    store.close()


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest) -> Store:
    """A migrated, empty archive, on each engine in turn."""
    opened: Store = request.getfixturevalue(f"{request.param}_store")
    return opened


@pytest.fixture(params=ENGINES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database in which nothing was ever made, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the corpus and the evaluation, beside the checkout or where TRIAGE_SHARED says."""
    told = os.environ.get("TRIAGE_SHARED")
    path = Path(told) if told else Path(__file__).resolve().parents[2] / "shared"
    if not path.is_dir():
        pytest.skip(f"no shared folder at {path}; TRIAGE_SHARED names another place")
    return path
