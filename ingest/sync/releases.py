"""The releases of one repository, and which of them hold a merged fix that no notes name.

The list takes no `since`, so the first page's etag says whether anything is new; most runs end there. What is
new is stored with the cursor: {"etag": of the first page, "asked": time, "open": whether that run is still
under way, "full": whether it asked for all}.

A fix is compared with the full releases published after its merge, oldest first, until one holds it: a
release's branch is cut before its tag. Where that branch has commits of its own, the fix may have been picked
into it: their subjects end in the pull request's number. Each pair is asked once and kept; the newest fixes
come first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import structlog
from sqlalchemy.orm import Session

from app.errors import GitHubError, InputError, RefusedError
from app.knowledge.indexing.batches import Progress, save_release_table
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
from app.store.records import ReleaseRecord
from ingest.github.client import Page
from ingest.parse import release_record
from ingest.sync.run import SyncRun, now

STREAM = "releases"
ASKED_JUST_NOW = timedelta(minutes=10)
"""A run that goes on after a stop this short ago does not ask for the releases again."""


def pull_releases(run: SyncRun) -> None:
    """Fetch and store what is new among the releases; everything in a `--full` run.

    Raises:
        GitHubError: GitHub refused or could not be reached; nothing of this call is stored.
    """
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
    """Note that the run which asked for the releases came to its end."""
    position = find_cursor(session, repo_id, STREAM)
    if position.get("open"):
        save_cursor(session, repo_id, STREAM, {**position, "open": False})


def _fetch(run: SyncRun, known: set[str], etag: str | None) -> tuple[list[ReleaseRecord], str | None]:
    """The releases up to a page without news, and the etag of the first page."""
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
"""Requests of the hour's budget that stay for the lists and for a report."""
TAGS_PER_FIX = 8
"""A fix that the first so many releases after its merge lack went another way than main."""
HELD_BY_TAG = frozenset({"behind", "identical"})
"""The merge commit, seen from the tag: the tag has it."""
LACKED_BY_TAG = frozenset({"ahead", "diverged"})
_NUMBERS_AT_END = re.compile(r"(?:\s*\(#[0-9]{1,9}\)){1,9}$")
MOST_PICKS = 100
"""Commits of a release's branch that are looked through."""


def ask_containment(run: SyncRun) -> None:
    """Compare fixes with releases as far as this run may; a refusal ends it and leaves the rest for the next.

    To be called when the lists are stored and read: it begins at what the pull requests say they fix.
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
        # The copy is whole without these answers, so the run did not fail.
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
    """The commit of a merge; lists of issues do not have it."""
    row = run.client.get_object(f"/repos/{run.repo}/pulls/{number}")
    commit = row.get("merge_commit_sha") if row is not None and row.get("merged_at") else None
    return commit if isinstance(commit, str) and commit.isalnum() and len(commit) <= 64 else None


def _compare(run: SyncRun, tag: str, commit: str, number: int) -> bool | None:
    """Whether a tag holds a commit, or that pull request picked; None where GitHub does not say."""
    name = quote(tag, safe="")
    # The second page is short: only the first carries the changed files.
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
    """GitHub's comparison; empty where it does not know one of the two."""
    try:
        return run.client.get_object(f"/repos/{run.repo}/compare/{base}...{head}", page) or {}
    except RefusedError as refused:
        if refused.answer != 422:
            raise
        return {}
