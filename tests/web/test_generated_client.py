"""A client that a generator made from our API description compiles, and is used against a real server."""

from __future__ import annotations

import compileall
import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.served import CRASH, CRASH_NUMBER, served, starter_settings

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
NAME = "openapi-python-client"
"""Its pins are not ours, so it lives in an environment of its own (`.ci/run` makes it)."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Asks an operation of a running server by the generated client: `api("issues.get_issue", number=1)`."""
    generator = shutil.which(NAME) or shutil.which(NAME, path=str(ROOT / ".venv-client" / "bin"))
    if generator is None:
        pytest.skip(f"{NAME} is not installed")
    folder = tmp_path_factory.mktemp("generated")
    with served(starter_settings(folder)) as url:
        (folder / "openapi.json").write_text(httpx.get(f"{url}/openapi.json").text, encoding="utf-8")
        command = [generator, "generate", "--path", "openapi.json", "--meta", "none", "--output-path", "made"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
        assert compileall.compile_dir(folder / "made", quiet=1)
        sys.path.insert(0, str(folder))
        try:
            with importlib.import_module("made").Client(
                base_url=url, raise_on_unexpected_status=True
            ) as client:

                def ask(operation: str, *parts: Any, **more: Any) -> Any:
                    return importlib.import_module(f"made.api.{operation}").sync(
                        *parts, client=client, **more
                    )

                yield ask
        finally:
            sys.path.remove(str(folder))


def test_every_operation_of_the_description_is_in_it(api: Any) -> None:
    made = importlib.import_module("made.api")
    folder = Path(str(made.__file__)).parent
    index = api("service.index")
    assert set(index.routes.to_dict()) <= {path.stem for path in folder.rglob("*.py")}


def test_a_log_is_diagnosed_and_its_issue_read(api: Any) -> None:
    request = importlib.import_module("made.models").DiagnoseRequest(log=CRASH)
    answer = api("diagnosis.diagnose", body=request)
    best = answer.matches[0]
    assert (answer.verdict, best.number) == ("same", CRASH_NUMBER)

    issue = api("issues.get_issue", best.number)
    assert issue.error.type_ == "CUDA error"
    assert [item.action for item in issue.workarounds]


def test_a_list_is_paged_and_a_refusal_is_a_problem(api: Any) -> None:
    first = api("issues.list_issues", limit=2)
    following = api("issues.list_issues", limit=2, cursor=first.next_cursor)
    assert len({item.number for page in (first, following) for item in page.items}) == 4

    refused = api("issues.get_issue", 999_999)
    assert refused.status == 404
    assert refused.title == "Not found"
