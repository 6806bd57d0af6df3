"""Against vLLM's own history: which release a fix is said to be in, and that no other is.

Each row is an issue, closed, and the pull request that says it closes it, merged or not. What tells the release
is the starter set's table alone, the releases' notes (cut where GitHub cuts them) with comparisons for what they
leave out, or comparisons alone. Prints the figures with `-s`.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from packaging.version import Version

from app.knowledge.fix.state import fix_states
from app.knowledge.indexing.batches import save_release_table
from app.store.derived.readings import find_facts
from app.store.github.issues import add_repository, find_issues
from app.store.records import quiet
from app.store.session import Store
from ingest.importer import import_paths
from ingest.sync import releases
from ingest.sync.run import SyncResult, SyncRun
from tests.samples import REPO

FIRST_ISSUE = 900_000
NOTES_CUT = 125_000
"""Characters of a release's notes that GitHub keeps."""
RIGHT_AT_LEAST = 0.97


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@dataclass
class Truth:
    """The history as the repository tells it, and what GitHub answers of it."""

    corpus: Path
    client: Any = None
    first: dict[str, str] = field(default_factory=dict)
    """By tag the day of the first merge that came with it."""

    def __post_init__(self) -> None:
        for row in self.pulls.values():
            tag, day = row["first_tag"], row["merged_or_commit_date"]
            self.first[tag] = min(self.first.get(tag, day), day)

    @cached_property
    def pulls(self) -> dict[int, dict[str, Any]]:
        return {row["pr"]: row for row in read(self.corpus / "pr_releases.jsonl.gz") if row["first_tag"]}

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        found = read(self.corpus / "issue_fix_release.jsonl.gz")
        return [row for row in found if row["certainty"] == "exact" or row["merged"] is None]

    @cached_property
    def reverts(self) -> list[dict[str, Any]]:
        return read(self.corpus / "reverts.jsonl.gz")

    def is_out(self, pull: int) -> bool:
        """Whether the pull request was taken back, and that was not taken back itself."""
        return any(pull in row["reverts_prs"] and not self.is_out(row["pr"]) for row in self.reverts)

    def is_picked(self, pull: int) -> bool:
        """Whether it came into its release when main was on the way to a later one already."""
        row = self.pulls[pull]
        tag, day = Version(row["first_tag"]), row["merged_or_commit_date"]
        return any(Version(later) > tag and begun < day for later, begun in self.first.items())

    @property
    def tags(self) -> dict[str, str]:
        """By tag the day it came out: after all that it holds."""
        days: dict[str, str] = defaultdict(str)
        for row in self.pulls.values():
            days[row["first_tag"]] = max(days[row["first_tag"]], row["merged_or_commit_date"])
        return dict(sorted(days.items(), key=lambda item: Version(item[0])))

    # What GitHub tells

    def issues(self, *, with_reverts: bool) -> list[dict[str, Any]]:
        """The issues and pull requests, as `/issues` lists them."""
        bodies: dict[int, list[str]] = defaultdict(list)
        merged: dict[int, str | None] = {}
        for row in self.reverts if with_reverts else ():
            bodies[row["pr"]] = [f"Reverts {REPO}#{pull}" for pull in row["reverts_prs"][:1]]
            merged[row["pr"]] = row["date"]
        for issue, row in enumerate(self.rows, FIRST_ISSUE):
            bodies[row["pr"]].append(f"Fixes #{issue}")
            merged[row["pr"]] = row["merged"]
        titles = {row["pr"]: _title(row) for row in (*self.pulls.values(), *self.reverts)}
        issues = range(FIRST_ISSUE, FIRST_ISSUE + len(self.rows))
        return [
            *(_row(n, titles.get(n, "A change"), "\n".join(bodies[n]), merged[n], pull=True) for n in bodies),
            *(_row(n, "[Bug]: it fails", "It fails.", "2026-08-01", pull=False) for n in issues),
        ]

    def releases(self, *, with_notes: bool) -> list[dict[str, Any]]:
        lists: dict[str, list[str]] = defaultdict(list)
        for number, pull in self.pulls.items():
            address = f"https://github.com/{REPO}/pull/{number}"
            lists[pull["first_tag"]].append(f"* {_title(pull)} by @someone in {address}\n")
        return [
            {
                "tag_name": tag,
                "name": tag,
                "body": ("## What's Changed\n" + "".join(lists[tag]))[:NOTES_CUT] if with_notes else "",
                "prerelease": False,
                "published_at": f"{day}T23:00:00Z",
                "html_url": f"https://github.com/{REPO}/releases/tag/{tag}",
            }
            for tag, day in self.tags.items()
        ]

    def get_object(self, path: str, _params: object = None) -> dict[str, Any]:
        """A pull request, or a comparison; a release's branch holds what was picked into it."""
        what, _, name = path.removeprefix(f"/repos/{REPO}/").partition("/")
        self.client.requests += 1
        if what == "pulls":
            return {"merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": f"c0ffee{int(name):034d}"}
        base, _, head = name.partition("...")
        sha, tag = (base, head) if base.startswith("c0ffee") else (head, base)
        pull = int(sha.removeprefix("c0ffee"))
        first, asked = Version(self.pulls[pull]["first_tag"]), Version(tag)
        picked = self.is_picked(pull)
        if asked.release[:2] > first.release[:2] if picked else asked >= first:
            return {"status": "behind", "commits": []}
        subjects = [
            row["title"] for n, row in self.pulls.items() if row["first_tag"] == tag and self.is_picked(n)
        ]
        commits = [{"commit": {"message": subject}} for subject in subjects]
        return {"status": "diverged", "commits": commits[:100], "total_commits": len(commits)}


def _title(row: dict[str, Any]) -> str:
    """The pull request's title: a merge's subject without the number at its end."""
    return str(row["title"]).rsplit(" (#", 1)[0]


def _row(number: int, title: str, body: str, closed: str | None, *, pull: bool) -> dict[str, Any]:
    merged = f"{closed}T12:00:00Z" if closed else None
    kind = "pull" if pull else "issues"
    return {
        "number": number,
        "title": title,
        "body": body,
        "state": "closed",
        "state_reason": None if pull else "completed",
        "created_at": "2023-01-01T00:00:00Z",
        "updated_at": "2026-08-01T00:00:00Z",
        "closed_at": merged or "2026-08-01T00:00:00Z",
        "html_url": f"https://github.com/{REPO}/{kind}/{number}",
        **({"pull_request": {"merged_at": merged}} if pull else {}),
    }


@pytest.mark.long
@pytest.mark.parametrize("source", ["table", "notes and comparisons", "comparisons"])
def test_the_release_of_a_fix_is_the_one_that_first_holds_it(
    sqlite_store: Store, shared: Path, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, truth = sqlite_store, Truth(shared / "corpus")
    rows = truth.issues(with_reverts=source != "table")
    rows += truth.releases(with_notes=source.startswith("notes")) if source != "table" else []
    path = tmp_path / "github.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert import_paths(store, [path], REPO).skipped == 0
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        if source == "table":
            save_release_table(session, repo_id)
    if source != "table":
        monkeypatch.setattr(releases, "MOST_REQUESTS", 1_000_000)
        limits = SimpleNamespace(has_token=True, remaining=None)
        truth.client = SimpleNamespace(requests=0, not_modified=0, limits=limits, get_object=truth.get_object)
        client = cast("Any", truth.client)
        releases.ask_containment(
            SyncRun(store, client, REPO, repo_id, 1, False, None, quiet, SyncResult(REPO))
        )
    numbers = list(range(FIRST_ISSUE, FIRST_ISSUE + len(truth.rows)))
    with store.reading() as session:
        stored = find_issues(session, repo_id, numbers)
        views = fix_states(session, repo_id, REPO, stored, find_facts(session, repo_id, numbers))

    right, wrong, landed, never = 0, [], 0, []
    for number, row in zip(numbers, truth.rows, strict=True):
        view = views[number]
        expected = row["first_tag"] and not truth.is_out(row["pr"]) and row["first_tag"].removeprefix("v")
        landed += row["certainty"] == "exact"
        if view.state == "fixed" and not row["first_tag"]:
            never.append((row["pr"], view.reason))
        elif view.state == "fixed" and view.released_in != expected:
            wrong.append((row["pr"], expected, view.reason))
        elif row["first_tag"]:
            right += (view.released_in or False) == expected
    asked = truth.client.requests if truth.client else 0
    print(f"\n{source}: right {right} of {landed}, wrong {wrong}, never landed {never}, requests {asked}")
    assert (wrong, never) == ([], [])
    assert right >= RIGHT_AT_LEAST * landed
