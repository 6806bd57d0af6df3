"""Which versions can be asked for."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from app.extract.versions import ordered
from app.knowledge.possible_versions import NEWEST_READ, can_be, nearest, numbers_of

RELEASES = ("v0.10.2", "v0.20.0", "v0.21.0", "v0.21.1", "v0.22.0rc1", "v0.22.0", "v0.22.1", "1.0.0.dev0")


@pytest.mark.parametrize(
    "version",
    [
        *("v0.21.1", "0.21", "0.21.0rc1", "0.21.0+cu129", "0.22.1.post1", "0.20.1.dev12", "0.22.2"),
        *("0.23.0rc2", "0.23.0.dev3", "1.0.0", "main", "1f26efb", "0.1.dev3151+g31c7178"),
    ],
)
def test_releases_their_builds_and_the_next_ones_can_be(version: str) -> None:
    assert can_be(version, numbers_of(RELEASES))


@pytest.mark.parametrize("version", ["9.9", "0.211.0", "0.25.0", "0.21.7", "99.1", "0.19.5.dev2"])
def test_what_no_release_is_and_none_to_come_cannot_be(version: str) -> None:
    assert not can_be(version, numbers_of(RELEASES))
    assert can_be(version, ())


@pytest.mark.parametrize(
    ("version", "near"),
    [
        ("0.211.0", "0.21.0"),
        ("0.222.1", "0.22.1"),
        ("99", "0.22.1"),
        ("0.24.0", "0.22.1"),
    ],
)
def test_the_nearest_release_is_named(version: str, near: str) -> None:
    assert nearest(version, RELEASES) == near


def test_the_newest_release_that_was_read_is_that_of_the_settings_that_are_gone() -> None:
    gone = tomllib.loads((files("app.knowledge") / "gone_settings.toml").read_text(encoding="utf-8"))
    newest = max(found for found in map(ordered, gone) if found is not None)

    assert (newest.major, newest.minor, newest.micro) == NEWEST_READ
