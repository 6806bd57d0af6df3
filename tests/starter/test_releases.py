"""The release table: what its file says."""

from __future__ import annotations

from packaging.version import Version

from app.paths import release_table
from app.starter.releases import read_release_table

TABLE = read_release_table(release_table())


def test_each_pull_request_has_one_release() -> None:
    assert len(TABLE.first_release) > 10_000
    assert (TABLE.first_release[1], TABLE.first_release[27420]) == ("v0.1.0", "v0.11.1")
    assert not any(Version(tag).is_prerelease for tag in set(TABLE.first_release.values()))


def test_a_revert_names_what_it_takes_back_and_comes_before_the_table() -> None:
    assert (8521, 8593) in {(item.number, item.by) for item in TABLE.reverted}
    assert all(item.number < item.by and item.at <= TABLE.as_of for item in TABLE.reverted)
