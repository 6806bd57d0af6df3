"""The house rules as a test: who may import whom, who may use which library, how long a module may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FLOORS = {
    "app.errors": 0,
    "app.paths": 0,
    "app.config": 1,
    "app.render": 1,
    "app.extract": 1,
    "app.starter": 2,
    "app.store": 2,
    "app.match": 3,
    "app.train": 4,
    "app.knowledge": 4,
    "app.web": 5,
    "ingest": 5,
    "app.terminal": 5,
    "app.remote": 5,
    "app.bench": 6,
    "app.main": 6,
    "app.server": 7,
    "app.commands": 8,
    "app.cli": 9,
}
"""A room may import rooms of lower floors, and its own. Rooms of one floor never meet."""

SIDE_DOORS = {
    ("app.store", "app.paths"): "the archive must find the migrations",
    ("app.server.run", "app.main"): "the server runs the application",
}

FENCES = {
    "httpx": {"ingest", "app.remote"},
    "respx": set(),
    "sqlmodel": {"app.store", "migrations", "app.match", "app.knowledge", "ingest"},
    "sqlalchemy": {"app.store", "migrations"},
    "sklearn": {"app.match", "app.train", "app.bench"},
    "bm25s": {"app.bench"},
    "fastapi": {"app.web", "app.main", "app.server.run"},
    "starlette": {"app.web", "app.main"},
    "jinja2": {"app.render", "app.knowledge.text.markdown", "app.web.views.render"},
    "limits": {"app.web.middleware.rate_limits"},
    "prometheus_client": {"app.web.middleware.metrics"},
    "mcp": {"app.web.mcp"},
    "typer": {"app.cli", "app.commands"},
    "uvicorn": {"app.server", "app.web.middleware.client"},
    "packaging": {"app.extract.versions"},
    "re2": {"app.extract.rules.patterns"},
    "stamina": {"ingest"},
}
"""Which rooms may use a library. `sqlmodel` outside the archive: for the type of a session only."""

LINES_MAX = 500
LONGER = {}
"""Modules that may be longer, each with the reason."""


def modules() -> Iterator[tuple[str, Path]]:
    for top in ("app", "ingest"):
        for path in sorted((ROOT / top).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def imports_of(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node


def room_of(module: str) -> str | None:
    return next((room for room in FLOORS if module == room or module.startswith(room + ".")), None)


MODULES = [pytest.param(name, path, id=name) for name, path in modules()]


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_imports_go_down_only(name: str, path: Path) -> None:
    mine = room_of(name)
    if name == "app":
        return
    assert mine is not None, f"{name} is in no room: name its floor in FLOORS, or put it into a room"
    for target, node in imports_of(path):
        theirs = room_of(target)
        if theirs is None or theirs == mine or (mine, theirs) in SIDE_DOORS:
            continue
        assert FLOORS[theirs] < FLOORS[mine], (
            f"{name}:{node.lineno} imports {target}: {mine} (floor {FLOORS[mine]}) may import lower floors "
            f"only, {theirs} is on floor {FLOORS[theirs]}. Move the code down, or hand the thing in from above."
        )


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_libraries_stay_behind_their_fences(name: str, path: Path) -> None:
    for target, node in imports_of(path):
        library = target.split(".")[0]
        allowed = FENCES.get(library)
        if allowed is None:
            continue
        inside = any(name == room or name.startswith(room + ".") for room in allowed)
        assert inside, f"{name}:{node.lineno} imports {library}; only {sorted(allowed) or 'tests'} may"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_no_room_above_the_archive_speaks_sql(name: str, path: Path) -> None:
    if name.startswith("app.store"):
        return
    for target, node in imports_of(path):
        if target == "sqlmodel" and isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            assert names == {"Session"}, f"{name}:{node.lineno}: queries belong into app.store, not {names}"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_modules_are_of_a_readable_size(name: str, path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LINES_MAX or name in LONGER, f"{name} has {lines} lines: split it by meaning"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_only_config_reads_the_environment(name: str, path: Path) -> None:
    if name == "app.config":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_environ = isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
        assert not is_environ, f"{name}:{node.lineno} reads the environment: settings come from app.config"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_only_a_unit_of_work_commits(name: str, path: Path) -> None:
    if name == "app.store.session":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_commit = isinstance(node, ast.Attribute) and node.attr == "commit"
        assert not is_commit, f"{name}:{node.lineno} commits: only store.session.unit_of_work does"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_every_module_says_what_it_is_for(name: str, path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{name} has no docstring"


@pytest.mark.parametrize(("name", "path"), MODULES)
def test_versions_are_compared_in_one_module_only(name: str, path: Path) -> None:
    """A `Version` is made by `app.extract.versions` alone, so that no placeholder is ever compared."""
    if name == "app.extract.versions":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        makes = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Version"
        assert not makes, f"{name}: use app.extract.versions.ordered, which knows what has no place"


def test_a_serving_process_loads_no_learner() -> None:
    serving = [path for name, path in modules() if not name.startswith("app.train")]
    importers = [str(p) for p in serving for target, _ in imports_of(p) if target.startswith("app.train")]
    assert importers == []
