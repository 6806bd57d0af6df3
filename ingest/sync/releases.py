"""Sync a repository's releases, and find which of them contain merged fixes not mentioned in any notes.

The list has no `since` parameter, so the first page's etag tells whether anything is new; most runs end
there. New releases are stored with the cursor: {"etag": of the first page, "asked": time, "open": whether
that run is still in progress, "full": whether it listed all}.

A fix is compared with the full releases published after its merge, oldest first, until one contains it, as
release branches are cut before the tag. If a branch has commits of its own, the fix may have been picked into
it: then a commit's subject ends with the pull request's number. Each pair is requested once and stored, the
newest fixes first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import structlog
from sqlalchemy.orm import Session

from app.errors import GitHubError, InputError, RefusedError
from app.knowledge.indexing.batches import save_release_table
from app.starter.card import REPO as TABLE_REPO
from app.store.derived.weeks import DatedRelease, release_dates
from app.store.github.releases import (
    NO_COMMIT,
    ContainmentAnswer,
    MergedFix,
    save_answers,
    save_releases,
    tags_of,
    unnamed_fixes,
)
from app.store.github.sync_state import find_cursor, save_cursor
from app.store.records import Progress, ReleaseRecord
from ingest.github.client import Page
from ingest.parse import release_record
from ingest.sync.run import SyncRun, now

STREAM = "releases"
ASKED_JUST_NOW = timedelta(minutes=10)
"""A run resumed within this time does not request the releases again."""


def pull_releases(run: SyncRun) -> None:
    """Fetch and store new releases; in a `--full` run, all of them."""
    if run.repo == TABLE_REPO:
        with run.store.unit_of_work() as session:
            save_release_table(session, run.repo_id)
    with run.store.reading() as session:
        position = find_cursor(session, run.repo_id, STREAM)
        known = tags_of(session, run.repo_id)
    records: list[ReleaseRecord] = []
    if not _was_asked_just_now(position, full=run.full):
        records, etag = _fetch(run, known, None if run.full else position.get("etag"))
        asked = {"etag": etag, "asked": now().isoformat(), "open": True, "full": run.full}
        with run.store.unit_of_work() as session:
            save_releases(session, run.repo_id, records)
            save_cursor(session, run.repo_id, STREAM, asked)
    tags = {record.tag for record in records}
    run.result.releases = len(tags - known)
    run.report(Progress("releases", len(tags)))


def close_releases(session: Session, repo_id: int) -> None:
    """Record that the run which requested the releases has ended."""
    position = find_cursor(session, repo_id, STREAM)
    if position.get("open"):
        save_cursor(session, repo_id, STREAM, {**position, "open": False})


def _fetch(run: SyncRun, known: set[str], etag: str | None) -> tuple[list[ReleaseRecord], str | None]:
    """Return the releases up to the first page without new ones, and the etag of the first page."""
    first = page = run.client.get_page(f"/repos/{run.repo}/releases", {"per_page": 100}, etag=etag)
    records = found = _records(run, page)
    while page.next_url and (run.full or {record.tag for record in found} - known):
        page = run.client.get_page(page.next_url)
        found = _records(run, page)
        records = records + found
    return records, first.etag


def _records(run: SyncRun, page: Page) -> list[ReleaseRecord]:
    records = []
    for row in page.items:
        try:
            records.append(release_record(row, run.repo))
        except InputError as fault:
            tag = row.get("tag_name") if isinstance(row, dict) else None
            run.result.skipped += (f"release {str(tag)[:40]}: {fault}",)
    return records


def _was_asked_just_now(position: dict[str, Any], *, full: bool) -> bool:
    if not position.get("open") or (full and not position.get("full")):
        return False
    return timedelta(0) <= now() - datetime.fromisoformat(position["asked"]) < ASKED_JUST_NOW


log = structlog.get_logger(__name__)

MOST_REQUESTS = 60
MOST_REQUESTS_WITHOUT_TOKEN = 6
LEFT_WITH_TOKEN = 500
LEFT_WITHOUT_TOKEN = 20
"""Remaining requests of the hour that are left for the lists and for reports."""
TAGS_PER_FIX = 8
"""Releases compared per fix; a fix missing in all of them was probably not merged into main."""
HELD_BY_TAG = frozenset({"behind", "identical"})
"""Status of the merge commit relative to the tag if the tag contains it."""
LACKED_BY_TAG = frozenset({"ahead", "diverged"})
_NUMBERS_AT_END = re.compile(r"(?:\s*\(#[0-9]{1,9}\)){1,9}$")
MOST_PICKS = 100
"""Maximum number of a release branch's own commits that are searched for cherry-picks."""


def ask_containment(run: SyncRun) -> None:
    """Compare fixes with releases within this run's share of requests; the next run does the rest.

    Call this when the lists are stored and their facts derived, as these say what the pull requests fix.
    """
    with run.store.reading() as session:
        releases = release_dates(session, run.repo_id, full=True)
        newest = releases[-1].published_at if releases else None
        fixes = unnamed_fixes(session, run.repo_id, run.repo, before=newest) if newest else []
    begun = run.client.requests
    asked = 0
    try:
        for fix in fixes:
            for answer in _answers(run, fix, releases, begun):
                with run.store.unit_of_work() as session:
                    save_answers(session, run.repo_id, [answer])
                asked += 1
                run.report(Progress("fixes", asked))
    except GitHubError as fault:
        # The copy is complete without these comparisons, so the run has not failed.
        log.warning("releases could not be compared", fault=str(fault))


def _answers(
    run: SyncRun, fix: MergedFix, releases: Sequence[DatedRelease], begun: int
) -> Iterator[ContainmentAnswer]:
    tags = [item.tag for item in releases if item.published_at >= fix.merged_at][:TAGS_PER_FIX]
    open_tags = [tag for tag in tags if tag not in fix.asked]
    if not open_tags or not _may_ask(run, begun):
        return
    commit = fix.commit_sha or _merge_commit(run, fix.number)
    if commit is None:
        yield ContainmentAnswer(fix.number, NO_COMMIT, None, None, now())
        return
    for tag in open_tags:
        if not _may_ask(run, begun):
            return
        contained = _compare(run, tag, commit, fix.number)
        yield ContainmentAnswer(fix.number, tag, contained, commit, now())
        if contained:
            return


def _may_ask(run: SyncRun, begun: int) -> bool:
    has_token, remaining = run.client.limits.has_token, run.client.limits.remaining
    most = MOST_REQUESTS if has_token else MOST_REQUESTS_WITHOUT_TOKEN
    left = LEFT_WITH_TOKEN if has_token else LEFT_WITHOUT_TOKEN
    return run.client.requests - begun < most and (remaining is None or remaining > left)


def _merge_commit(run: SyncRun, number: int) -> str | None:
    """Return a pull request's merge commit, which lists of issues do not contain."""
    row = run.client.get_object(f"/repos/{run.repo}/pulls/{number}")
    commit = row.get("merge_commit_sha") if row is not None and row.get("merged_at") else None
    return commit if isinstance(commit, str) and commit.isalnum() and len(commit) <= 64 else None


def _compare(run: SyncRun, tag: str, commit: str, number: int) -> bool | None:
    """True if a tag contains a commit or a cherry-pick of its pull request; None if GitHub does not tell."""
    name = quote(tag, safe="")
    # Page 2, because only the first page contains the changed files, which are long.
    status = _between(run, name, commit, {"per_page": 1, "page": 2}).get("status")
    if status in HELD_BY_TAG:
        return True
    if status != "diverged":
        return False if status in LACKED_BY_TAG else None
    row = _between(run, commit, name, {"per_page": MOST_PICKS})
    subjects = [str(item["commit"]["message"]).partition("\n")[0] for item in row.get("commits", ())]
    endings = (found[0] for subject in subjects if (found := _NUMBERS_AT_END.search(subject.rstrip())))
    if any(f"(#{number})" in ending for ending in endings):
        return True
    return False if row.get("total_commits", MOST_PICKS + 1) <= MOST_PICKS else None


def _between(run: SyncRun, base: str, head: str, page: dict[str, int]) -> Mapping[str, Any]:
    """Return GitHub's comparison, or an empty object if it does not know one of the two commits."""
    try:
        return run.client.get_object(f"/repos/{run.repo}/compare/{base}...{head}", page) or {}
    except RefusedError as refused:
        if refused.answer != 422:
            raise
        return {}
