"""The wheel, installed in a bare virtual environment, works from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PAGE = """
from fastapi.testclient import TestClient
from app.config import load_settings
from app.main import create_app
with TestClient(create_app(load_settings())) as client:
    page = client.get("/")
    style = client.get("/static/style.css")
print(page.status_code, style.status_code, "textarea" in page.text)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # The build backend is called in this environment: no test reaches for the network.
    code = f"import hatchling.build as b; print(b.build_wheel({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_templates_migrations_lists_and_cards(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "app/_data/templates/base.html" in names
    assert any(name.startswith("app/_data/migrations/versions/") for name in names)
    assert "app/extract/lists/wrappers.toml" in names
    data = (
        "app/match/search/weights.json",
        "app/extract/confidence.json",
        "app/extract/remedies/remedy_weights.json",
    )
    assert set(data) <= set(names)
    assert {"app/web/static/style.css", "app/starter/releases.toml"} <= set(names)
    assert sum(name.startswith("app/starter/cards/") for name in names) >= 80
    assert not any(name.startswith("tests/") for name in names)


@pytest.mark.long
def test_installed_bare_it_migrates_and_serves_a_page_from_another_folder(
    wheel: Path, tmp_path: Path
) -> None:
    environment, folder = tmp_path / "env", tmp_path / "elsewhere"
    folder.mkdir()
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(install, check=True, capture_output=True)
    # The dependencies are lent by this environment; the project itself comes from the wheel alone.
    lent = environment / sysconfig.get_path("purelib", vars={"base": ""}).lstrip("/") / "lent.pth"
    lent.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TRIAGE_", "PYTHON"))}
    clean["XDG_DATA_HOME"] = str(tmp_path / "data")
    where = subprocess.run(
        [python, "-c", "import app; print(app.__file__)"],
        cwd=folder,
        env=clean,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert str(environment) in where
    migrated = subprocess.run(
        [environment / "bin" / "triage", "migrate"],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (migrated.returncode, "the schema is" in migrated.stderr) == (0, True), migrated.stderr
    assert list((tmp_path / "data").rglob("triage.db"))
    assert not list(folder.iterdir()), "no folder gets a database because a command ran in it"
    page = subprocess.run(
        [python, "-c", PAGE], cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert page.stdout.split()[-3:] == ["200", "200", "True"], page.stderr
