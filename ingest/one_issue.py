"""Fetch one issue on demand, with its linked issues, in a few requests; sync cursors do not move."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.config import Settings
from app.errors import GitHubError, InputError, RefusedError
from app.knowledge.cluster.update import withdraw
from app.knowledge.indexing.batches import derive_changed
from app.store.derived.links import save_links
from app.store.derived.readings import links_from
from app.store.github.issues import (
    add_repository,
    find_heads,
    find_issue,
    find_repository,
    save_comments,
    save_issues,
)
from app.store.github.presence import last_seen
from app.store.records import LinkRecord
from app.store.session import Store
from ingest.github.client import GitHubClient
from ingest.github.rate_limits import RequestBudget
from ingest.parse import comment_record, issue_record, repo_named

LINKED_MAX = 8
"""Maximum number of linked issues fetched along: without a token GitHub allows 60 requests an hour."""
REFERENCED_BY = "referenced_by"
TRANSFERRED_TO = "transferred_to"


FETCH_WAIT_S = 5.0
"""Longest wait for rate limits, as a person is waiting for the result."""
KEPT_FOR_SYNC = 40
"""Requests of an hour without a token that are reserved for the sync; visitors may use the others."""
FRESH_FOR = timedelta(minutes=10)


class FetchForVisitors:
    """Fetches issues for visitors, keeping the state of the rate limit between calls."""

    def __init__(self) -> None:
        self._limits: RequestBudget | None = None

    def __call__(self, settings: Settings, store: Store, repo: str, number: int, /) -> bool:
        """Fetch an issue unless it was fetched recently; return False if GitHub does not have it.

        Raises:
            GitHubError: GitHub refused or is unreachable, or the remaining requests are the sync's.
        """
        with store.reading() as session:
            repo_id = find_repository(session, repo)
            seen_at = last_seen(session, "issue", repo_id, number)
        if seen_at is not None and abs(datetime.now(UTC) - seen_at) < FRESH_FOR:
            return True
        token = settings.github_token.get_secret_value() if settings.github_token else None
        with GitHubClient(settings.github_api_url, token, max_wait_s=FETCH_WAIT_S) as client:
            self._limits = client.limits = self._limits or client.limits
            client.limits.kept = KEPT_FOR_SYNC
            return fetch_with_links(store, client, repo, number)


@dataclass(frozen=True, slots=True)
class NumberAnswer:
    """GitHub's answer for one issue number.

    Attributes:
        row: the issue; None if it is gone.
        moved_to: repository and number it was transferred to; "" or 0 for what GitHub does not tell.
    """

    row: Mapping[str, Any] | None
    moved_to: tuple[str, int] | None = None


def fetch_with_links(store: Store, client: GitHubClient, repo: str, number: int) -> bool:
    """Fetch and store an issue, then its linked issues that are not stored; False if GitHub does not have it.

    Linked issues are optional: an error while fetching them is ignored.

    Raises:
        GitHubError: GitHub refused or was unreachable when fetching the issue itself.
    """
    if not fetch_issue(store, client, repo, number):
        return False
    with suppress(GitHubError, InputError):
        for linked in _missing(store, repo, number):
            row = ask_issue(client, repo, linked).row
            if row is not None:
                record = issue_record(row, repo)  # the sync fetches its comments
                with store.unit_of_work() as session:
                    save_issues(session, add_repository(session, repo), [record])
                derive_changed(store, repo, [linked])
    return True


def _missing(store: Store, repo: str, number: int) -> list[int]:
    """Return linked issue numbers of the same repository that are not stored, at most LINKED_MAX."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        links = links_from(session, repo_id, number)
        wanted = list(dict.fromkeys(link.target_number for link in links if link.target_repo == repo))
        stored = {issue.number for issue in find_heads(session, repo_id, wanted)}
    return [one for one in wanted if one not in stored][:LINKED_MAX]


def fetch_issue(store: Store, client: GitHubClient, repo: str, number: int) -> bool:
    """Fetch and store an issue with comments and cross-references; False if GitHub does not have it.

    A stored issue that was deleted or transferred is marked as gone.
    """
    asked_at = datetime.now(UTC)
    found = ask_issue(client, repo, number)
    if found.row is None:
        with store.unit_of_work() as session:
            repo_id = add_repository(session, repo)
            if found.moved_to is not None:
                mark_transferred(session, repo_id, number, found.moved_to)
            else:
                withdraw(session, repo_id, number, "deleted")
        return False
    path = f"/repos/{repo}/issues/{number}"
    comments = _all_rows(client, f"{path}/comments")
    try:
        record = issue_record(found.row, repo)
        records = [comment_record(comment) for comment in comments]
    except InputError as fault:
        raise GitHubError(f"GitHub's answer about #{number} cannot be used: {fault}") from None
    links = _references(_all_rows(client, f"{path}/timeline", missing_ok=True), repo)
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, [record], seen_at=asked_at)
        save_comments(session, repo_id, records, seen_at=asked_at)
        save_links(session, repo_id, number, links, kind=REFERENCED_BY)
    derive_changed(store, repo, [number])
    return True


def ask_issue(client: GitHubClient, repo: str, number: int) -> NumberAnswer:
    """Request one issue, distinguishing a transferred issue from a renamed repository."""
    path = f"/repos/{repo}/issues/{number}"
    row, found_at = client.find_object(path)
    if found_at != client.origin.address(path).path and not _is_of(client, repo, found_at):
        there = row.get("number") if row is not None else None
        return NumberAnswer(None, (repo_named(row) or "", there if isinstance(there, int) else 0))
    if row is not None and row.get("number") != number:
        raise GitHubError(f"GitHub answered another issue for #{number}")
    return NumberAnswer(row)


def _is_of(client: GitHubClient, repo: str, path: str) -> bool:
    """True if a path that GitHub redirects to is that of a repository, which has another name by now."""
    home = client.get_object(f"/repos/{repo}") or {}
    places = f"/repositories/{home.get('id')}/", f"/repos/{home.get('full_name')}/"
    return any(place in path for place in places)


def mark_transferred(session: Session, repo_id: int, number: int, moved_to: tuple[str, int]) -> bool:
    """Mark an issue as transferred, with a link to its new place if known; True if it was not marked yet."""
    is_new = withdraw(session, repo_id, number, "transferred")
    if all(moved_to) and find_issue(session, repo_id, number) is not None:
        link = LinkRecord(*moved_to, TRANSFERRED_TO, "GitHub redirects there")
        save_links(session, repo_id, number, [link], kind=TRANSFERRED_TO)
    return is_new


def _all_rows(client: GitHubClient, path: str, *, missing_ok: bool = False) -> list[Any]:
    rows: list[Any] = []
    try:
        page = client.get_page(path, {"per_page": 100})
        rows.extend(page.items)
        while page.next_url:
            page = client.get_page(page.next_url)
            rows.extend(page.items)
    except RefusedError as error:
        if not missing_ok or error.answer not in {404, 410}:
            raise
    return rows


def _references(events: Iterable[Any], repo: str) -> list[LinkRecord]:
    found: dict[tuple[str, int], LinkRecord] = {}
    for event in events:
        if not isinstance(event, dict) or event.get("event") != "cross-referenced":
            continue
        source = event.get("source")
        row = source.get("issue") if isinstance(source, dict) else None
        number = row.get("number") if isinstance(row, dict) else None
        if isinstance(number, int) and 0 < number < 2**31:
            name = repo_named(row) or repo
            found[name, number] = LinkRecord(name, number, REFERENCED_BY, "GitHub's timeline")
    return list(found.values())
