"""The rules of the house: who may import whom, who may use which library, how modules and tests are laid out."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ROOMS: Sequence[Sequence[str]] = (
    ("app.errors", "app.paths", "app.vllm_plugin", "app.client"),
    ("app.config", "app.render", "app.extract"),
    ("app.starter", "app.store"),
    ("app.match", "app.model_reader"),
    ("app.knowledge", "app.train"),
    ("app.terminal",),
    ("app.web", "app.remote", "ingest"),
    ("app.main", "app.bench"),
    ("app.server",),
    ("app.commands",),
    ("app.cli",),
)
"""Rooms from the ground up. A room may import lower floors and itself; rooms of one floor never meet."""

FLOORS: dict[str, Sequence[Sequence[str]]] = {
    "app.extract": (
        ("lists", "facts"),
        ("rules", "versions"),
        ("text", "evidence"),
        ("log", "redact", "statements"),
        ("fields",),
        ("remedies",),
        ("prose",),
        ("reader", "summary", "jsonl"),
    ),
    "app.store": (
        ("tables", "records"),
        ("engine",),
        ("memo",),
        ("session", "schema"),
        ("github", "people"),
        ("derived",),
        ("backup",),
    ),
    "app.match": (("search",), ("pairs",), ("clusters",)),
    "app.model_reader": (
        ("reply", "connection"),
        ("prompt", "client", "embeddings"),
        ("check",),
        ("merge",),
    ),
    "app.knowledge": (
        ("labels", "markdown", "iso_week", "possible_versions"),
        ("freshness", "fix"),
        ("remedies",),
        ("issue", "launch"),
        ("version",),
        ("cluster",),
        ("stack",),
        ("diagnosis", "digest", "indexing"),
        ("home", "inbox", "operations"),
    ),
    "app.web": (
        ("headers", "cache", "deps", "body"),
        ("views",),
        ("answers",),
        ("middleware",),
        ("routes", "mcp"),
    ),
    "ingest": (("github", "parse"), ("derive",), ("sync", "one_issue", "webhook", "importer")),
}
"""The floors inside a room, likewise: folders and modules that lie directly in it."""

SIDE_DOORS = {("app.store", "app.paths"): "the archive finds the migrations"}

FENCES = {
    "httpx": {"ingest", "app.remote", "app.model_reader.connection"},
    "respx": set(),
    "sqlalchemy": {"app.store", "migrations", "app.match", "app.knowledge", "ingest"},
    "sklearn": {"app.train"},
    "fastapi": {"app.web", "app.main", "app.server"},
    "starlette": {"app.web", "app.main", "app.server"},
    "jinja2": {"app.render", "app.knowledge.markdown", "app.web.views.render"},
    "prometheus_client": {"app.web.middleware.metrics"},
    "mcp": {"app.web.mcp"},
    "typer": {"app.cli", "app.commands"},
    "uvicorn": {"app.server", "app.web.middleware.client"},
    "packaging": {"app.extract.versions"},
    "re2": {"app.extract.rules"},
    "stamina": {"ingest", "app.model_reader.connection"},
}
"""Which rooms may use a library. `sqlalchemy` outside the archive: for the type of a session only."""

FOLDER_MODULES_MAX = 14
LONG_LINES = 500
LONGER: dict[str, str] = {}
"""Modules longer than LONG_LINES, each with the reason why its parts belong together."""
TINY_LINES = 25
TINY: dict[str, str] = {}
"""Modules shorter than TINY_LINES with a single importer, each with the reason why it stands alone."""


@dataclass(frozen=True)
class Module:
    """A module of the house and what it imports."""

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @property
    def lines(self) -> int:
        return len(self.path.read_text(encoding="utf-8").splitlines())

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def imports(self) -> list[tuple[str, ast.stmt]]:
        """Modules imported, with the statement; `from package import module` names the module."""
        found: list[tuple[str, ast.stmt]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [(alias.name, node) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found.append((whole if whole in NAMES else node.module, node))
        return found


def _modules() -> Iterator[tuple[str, Path]]:
    for top in ("app", "ingest"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


NAMES = dict(_modules())
MODULES = [Module(name, path) for name, path in NAMES.items()]


def _inside(name: str, places: Sequence[str] | set[str]) -> str | None:
    return next((place for place in places if name == place or name.startswith(place + ".")), None)


def _floor_of(name: str, floors: Sequence[Sequence[str]]) -> int | None:
    return next((at for at, places in enumerate(floors) if _inside(name, places)), None)


def _report(faults: Iterator[str]) -> None:
    found = list(faults)
    assert not found, "\n".join(found)


def test_imports_between_rooms_go_down_only() -> None:
    def faults() -> Iterator[str]:
        places = [place for floor in ROOMS for place in floor]
        for module in MODULES:
            mine = _inside(module.name, places)
            if mine is None and module.name != "app":
                yield f"{module.name} is in no room: put it into one, or name its floor in ROOMS"
            for target, node in module.imports:
                theirs = _inside(target, places)
                if mine is None or theirs is None or theirs == mine or (mine, theirs) in SIDE_DOORS:
                    continue
                if (_floor_of(theirs, ROOMS) or 0) >= (_floor_of(mine, ROOMS) or 0):
                    yield (
                        f"{module.name}:{node.lineno} imports {target}, and {theirs} is not below {mine}: "
                        "move the code down, or hand the thing in from above"
                    )

    _report(faults())


def test_imports_inside_a_room_go_down_only() -> None:
    def faults() -> Iterator[str]:
        for room, names in FLOORS.items():
            floors = [[f"{room}.{name}" for name in floor] for floor in names]
            places = [place for floor in floors for place in floor]
            for module in MODULES:
                if not module.name.startswith(room + "."):
                    continue
                mine = _inside(module.name, places)
                if mine is None:
                    yield f"{module.name} has no floor in {room}: name it in FLOORS"
                    continue
                for target, node in module.imports:
                    theirs = _inside(target, places)
                    if theirs is None or theirs == mine:
                        continue
                    if (_floor_of(theirs, floors) or 0) > (_floor_of(mine, floors) or 0):
                        yield f"{module.name}:{node.lineno} imports {target}, which lies above {mine}"

    _report(faults())


def test_no_two_folders_import_each_other() -> None:
    edges: dict[tuple[str, str], str] = {}
    for module in MODULES:
        folder = _folder(module.name)
        for target, node in module.imports:
            theirs = _folder(target) if target in NAMES else folder
            if theirs != folder:
                edges.setdefault((folder, theirs), f"{module.name}:{node.lineno} imports {target}")
    _report(f"{text}, and {edges[b, a]}" for (a, b), text in edges.items() if a < b and (b, a) in edges)


def _folder(name: str) -> str:
    """The folder of a module; a module directly in a room stands for itself."""
    if (
        NAMES[name].name == "__init__.py"
        or name.count(".") < 2
        or (name.startswith("ingest.") and name.count(".") < 2)
    ):
        return name
    parent = name.rpartition(".")[0]
    return name if parent in FLOORS else parent


def test_no_module_imports_itself_in_a_circle() -> None:
    below: dict[str, set[str]] = {
        module.name: {target for target, _ in module.imports if target in NAMES and target != module.name}
        for module in MODULES
    }
    while free := [name for name, targets in below.items() if not targets & below.keys()]:
        for name in free:
            del below[name]
    left = [name for name in below if any(name in targets for targets in below.values())]
    assert not left, f"in a circle, or between two: {left}"


def test_libraries_stay_behind_their_fences() -> None:
    _report(
        f"{module.name}:{node.lineno} imports {target}; only {sorted(allowed) or 'tests'} may"
        for module in MODULES
        for target, node in module.imports
        if (allowed := FENCES.get(target.split(".")[0])) is not None and not _inside(module.name, allowed)
    )


def test_only_the_archive_speaks_sql() -> None:
    _report(
        f"{module.name}:{node.lineno}: queries belong into app.store"
        for module in MODULES
        for target, node in module.imports
        if target.split(".")[0] == "sqlalchemy"
        and not module.name.startswith("app.store")
        and isinstance(node, ast.ImportFrom)
        and {alias.name for alias in node.names} != {"Session"}
    )


@pytest.mark.parametrize(
    ("attributes", "allowed", "why"),
    [
        (
            {"environ", "getenv"},
            {"app.config", "app.vllm_plugin", "app.client"},
            "settings come from app.config",
        ),
        ({"commit"}, {"app.store.session"}, "only store.session.unit_of_work commits"),
    ],
)
def test_one_module_alone_does_it(attributes: set[str], allowed: set[str], why: str) -> None:
    _report(
        f"{module.name}:{node.lineno} uses .{node.attr}: {why}"
        for module in MODULES
        if module.name not in allowed
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr in attributes
    )


def test_versions_are_compared_in_one_module_only() -> None:
    """Only `app.extract.versions` makes a `Version`, so that no untagged build is ever compared."""
    _report(
        f"{module.name}:{node.lineno}: use app.extract.versions.ordered, which knows what has no place"
        for module in MODULES
        if module.name != "app.extract.versions"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Version"
    )


def test_every_module_says_what_it_is_for() -> None:
    _report(f"{module.name} has no docstring" for module in MODULES if not ast.get_docstring(module.tree))


def test_a_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module.name)
    _report(f"{name} is defined in {', '.join(where)}" for name, where in homes.items() if len(where) > 1)


def test_no_folder_holds_more_than_a_reader_can_survey() -> None:
    counts = Counter(
        str(path.parent.relative_to(ROOT)) for path in NAMES.values() if path.name != "__init__.py"
    )
    _report(
        f"{folder} holds {count} modules: which subject has no folder yet?"
        for folder, count in counts.items()
        if count > FOLDER_MODULES_MAX
    )


def test_a_long_module_has_a_reason() -> None:
    long = {module.name for module in MODULES if module.lines > LONG_LINES}
    assert long == LONGER.keys(), "name in LONGER why its parts belong together, or split it by meaning"


def test_a_tiny_module_has_a_reason() -> None:
    importers: Counter[str] = Counter()
    for module in MODULES:
        importers.update({target for target, _ in module.imports} - {module.name})
    tiny = {
        module.name
        for module in MODULES
        if not module.is_package and module.lines < TINY_LINES and importers[module.name] == 1
    }
    assert tiny == TINY.keys(), "put it into its importer, or name in TINY why it stands alone"


def test_a_serving_process_loads_no_learner() -> None:
    _report(
        f"{module.name}:{node.lineno} imports {target}"
        for module in MODULES
        if not module.name.startswith("app.train")
        for target, node in module.imports
        if target.startswith("app.train")
    )


ACROSS = {
    "tests",
    "tests/bench",
    "tests/browser",
    "tests/extract",
    "tests/ingest",
    "tests/knowledge",
    "tests/model_reader",
    "tests/server",
    "tests/store",
    "tests/web",
}
"""Folders whose tests may ask about more than one module: kills, faults, attacks, both engines."""


def test_tests_lie_where_the_code_lies() -> None:
    def faults() -> Iterator[str]:
        for path in sorted((ROOT / "tests").rglob("test_*.py")):
            folder = path.parent.relative_to(ROOT)
            if str(folder) in ACROSS:
                continue
            inner = folder.relative_to("tests")
            places = [ROOT / "app" / inner, ROOT / inner]
            name = path.name.removeprefix("test_")
            if not any(
                (place / name).exists() or (place / name.removesuffix(".py")).is_dir() for place in places
            ):
                yield f"{path.relative_to(ROOT)} tests no module of its name"

    _report(faults())
