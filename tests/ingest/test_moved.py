"""A base that was published and put in place elsewhere syncs on as if it had never been moved."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from app.store.backup.backup import restore
from app.store.backup.snapshot import MANIFEST, PACKED, read_manifest, unpack, write_snapshot
from app.store.session import Store, open_store
from tests.ingest.sync.test_sync import fill, numbers, run


def test_a_restored_snapshot_asks_github_for_the_same(
    base: Store, github: Any, derive: Any, tmp_path: Path
) -> None:
    fill(github, 330, 120)
    run(base, github, derive)
    write_snapshot(base, tmp_path, rules="r1")
    unpack(tmp_path / PACKED, read_manifest((tmp_path / MANIFEST).read_bytes()), tmp_path / "unpacked.db")
    moved_to = f"sqlite:///{tmp_path}/moved.db"
    restore(tmp_path / "unpacked.db", moved_to)
    for number in (7, 331):
        github.put_issue(number, 400 * 90 + number)

    asked = []
    with closing(open_store(moved_to)) as moved:
        for store in (base, moved):
            start = len(github.asked)
            result = run(store, github, derive)
            asked.append([(str(r.url), r.headers.get("if-none-match")) for r in github.asked[start:]])
            assert (result.complete, result.issues) == (True, 2)
        assert numbers(moved) == numbers(base) == list(range(1, 332))

    assert asked[0] == asked[1]
    assert len(asked[0]) < 8
