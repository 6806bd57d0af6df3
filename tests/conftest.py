"""What all rooms' tests share: an archive on each engine, the shared folder, a sample of the long tests."""

from __future__ import annotations

import gc
import math
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy import text

from app.store.schema import migrate
from app.store.session import Store, open_store
from app.store.tables import metadata
from tests.bytecode import keep_bytecode
from tests.postgresql import CannotStartError, PostgreSQL, set_up_server
from tests.shared_work import share_compiled_statements
from tests.starter_base import set_folder

ENGINES = ("sqlite", "postgresql")
keep_bytecode()
SERVER = pytest.StashKey[PostgreSQL | CannotStartError]()
os.environ["TRIAGE_RATE_LIMIT"] = "off"  # tests ask often, and from the loopback, which counts too
if _folder := os.environ.pop("TRIAGE_SCREENSHOTS", None):
    os.environ["SCREENSHOTS"] = _folder  # commands warn of a variable with their prefix that is no setting
LONG_SHARE = 0.1
"""How many of the tests marked `long` a sample holds; some twenty commits see nearly all of them."""

# The first example of a property test compiles patterns and lists; a deadline would time that.
for _name, _examples in (("quick", 25), ("thorough", 100)):
    hypothesis_settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
hypothesis_settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "long":
        hypothesis_settings.load_profile("thorough")


ON_POSTGRESQL_TOO = (
    "tests/store/derived/",
    "tests/store/engine/",
    "tests/store/github/",
    "tests/store/test_",
    "tests/match/",
    "tests/ingest/sync/test_sync.py",
    "tests/web/routes/test_judgements.py",
    "tests/web/test_faults.py",
)
"""Where each engine is asked every time: what speaks SQL, and what depends on how an engine locks and fails.
Elsewhere a test on both engines runs on PostgreSQL with `-m long`."""


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """With `-m long` the property tests run too, with more examples, and all else on PostgreSQL."""
    is_property = hasattr(getattr(item, "obj", None), "hypothesis")
    if is_property and item.config.option.markexpr == "long":
        item.add_marker(pytest.mark.long)
    call = getattr(item, "callspec", None)
    if call and "postgresql" in call.params.values() and not item.nodeid.startswith(ON_POSTGRESQL_TOO):
        item.add_marker(pytest.mark.long)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long-sample", metavar="SEED", help="of the tests marked long, run a sample chosen by SEED"
    )
    parser.addoption(
        "--fuzz-bodies", type=int, default=5_000, metavar="N", help="bodies of the long fuzz test"
    )
    parser.addoption("--fuzz-seed", type=int, default=0, metavar="SEED", help="which bodies these are")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--long-sample")
    if seed is None:
        return
    long = sorted((item for item in items if item.get_closest_marker("long")), key=lambda item: item.nodeid)
    kept = set(random.Random(seed).sample(long, k=math.ceil(len(long) * LONG_SHARE)))
    dropped = [item for item in long if item not in kept]
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=dropped)


def pytest_collection_finish() -> None:
    """Some million objects of modules and tests stay to the end: no collection of garbage walks them again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Before a worker of pytest-xdist starts: one PostgreSQL server serves all of them."""
    stash = node.config.stash
    if SERVER not in stash:
        try:
            server = set_up_server()
            server.start()
        except CannotStartError as error:
            stash[SERVER] = error
        else:
            stash[SERVER] = server
    kept = stash[SERVER]
    if isinstance(kept, PostgreSQL):
        node.workerinput["postgresql"] = (str(kept.binaries), str(kept.folder))
    else:
        node.workerinput["no_postgresql"] = str(kept)


def pytest_unconfigure(config: pytest.Config) -> None:
    server = config.stash.get(SERVER, None)
    if isinstance(server, PostgreSQL):
        server.remove()


def _without_postgresql(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; install Debian's package postgresql")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgresql(request: pytest.FixtureRequest) -> Iterator[PostgreSQL]:
    """One server for all tests of the session, shared by the workers of pytest-xdist."""
    given = getattr(request.config, "workerinput", {})
    if "postgresql" in given:
        binaries, folder = map(Path, given["postgresql"])
        yield PostgreSQL(binaries, folder, identity={}, prefix=given["workerid"])
        return
    if "no_postgresql" in given:
        _without_postgresql(given["no_postgresql"])
    try:
        server = set_up_server()
        server.start()
    except CannotStartError as error:
        _without_postgresql(str(error))
    yield server
    server.remove()


@pytest.fixture
def own_postgresql() -> Iterator[PostgreSQL]:
    """A server that a test may stop and start; it comes back from a crash with all that was committed."""
    try:
        server = set_up_server("fsync=off")
        server.start()
    except CannotStartError as error:
        pytest.skip(str(error))
    yield server
    server.remove()


@pytest.fixture(scope="session", autouse=True)
def _starter_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    set_folder(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session", autouse=True)
def _shared_statements() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        share_compiled_statements(patch)
        yield


@pytest.fixture(scope="session")
def _postgresql_template(postgresql: PostgreSQL) -> str:
    """The name of a migrated database that nobody has open."""
    store = open_store(postgresql.new_database())
    migrate(store)
    store.close()
    name = store.engine.url.database
    assert name
    return name


@pytest.fixture(scope="session")
def _migrated_postgresql(postgresql: PostgreSQL, _postgresql_template: str) -> str:
    return postgresql.new_database(_postgresql_template)


@pytest.fixture(scope="session")
def _migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "triage.db"
    store = open_store(f"sqlite:///{path}")
    migrate(store)
    store.close()
    return path


@pytest.fixture(scope="session")
def new_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Store]]:
    """Makes a migrated, empty archive on an engine, for a base that several tests read and none changes."""
    opened: list[Store] = []

    def make(engine: str) -> Store:
        if engine == "sqlite":
            path = tmp_path_factory.mktemp("base") / "triage.db"
            shutil.copyfile(request.getfixturevalue("_migrated_sqlite"), path)
            url = f"sqlite:///{path}"
        else:
            template = request.getfixturevalue("_postgresql_template")
            url = request.getfixturevalue("postgresql").new_database(template)
        opened.append(open_store(url))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def _empty(store: Store) -> None:
    # Many times as quick as TRUNCATE, which makes new files for every table and index.
    with store.engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
        connection.execute(text("SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'"))


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
    found = os.environ.get("TRIAGE_SHARED")
    path = Path(found) if found else Path(__file__).resolve().parents[2] / "shared"
    if not path.is_dir():
        pytest.skip(f"no shared folder at {path}; TRIAGE_SHARED names another place")
    return path
