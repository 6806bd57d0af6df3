"""What is installed is what was pinned, so that what was checked is what runs."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = "vllm-triage"
EXTRAS = ("", "postgres", "bench", "train", "dev", "long")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {
        canonicalize_name(name): pin
        for name, _, pin in (line.partition("==") for line in lines if line.strip())
    }


def needed() -> set[str]:
    """Every distribution the project needs here, directly or not."""
    found: set[str] = set()
    waiting = [(PROJECT, extra) for extra in EXTRAS]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        if name != PROJECT:
            found.add(name)
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        for requirement in map(Requirement, requirements):
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            for wanted in ("", *requirement.extras):
                item = (str(canonicalize_name(requirement.name)), wanted)
                if item not in seen:
                    seen.add(item)
                    waiting.append(item)
    return found


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


@pytest.fixture(autouse=True)
def _installed() -> None:
    if not is_installed(PROJECT):
        pytest.skip("the project is run from its folder, not installed")


def test_every_dependency_is_pinned() -> None:
    assert sorted(needed() - set(pins())) == []


def test_what_is_installed_is_what_is_pinned() -> None:
    installed = {name: version(name) for name in needed() if is_installed(name)}
    other = {name: found for name, found in installed.items() if found != pins()[name]}
    assert other == {}, "install with -c constraints.txt"


@pytest.mark.long
def test_nothing_is_pinned_that_nothing_needs() -> None:
    if not is_installed("fastmcp"):
        pytest.skip("what the extra `long` needs is known where it is installed")
    assert sorted(set(pins()) - needed() - {"pip", "setuptools"}) == []


def test_the_lock_with_hashes_holds_the_same_versions() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    blocks = re.findall(r"^([\w.-]+)==(\S+) \\\n((?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n?)+)", text, re.M)
    locked = {canonicalize_name(name): pin for name, pin, _ in blocks}

    assert len(locked) == len(re.findall(r"^[\w.-]+==", text, re.M))
    assert {name: pin for name, pin in locked.items() if pins().get(str(name)) != pin} == {}
    assert {"fastapi", "psycopg-binary", "hatchling"} <= set(locked)
