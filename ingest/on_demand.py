"""An issue that a person asks for, with what it is linked to: a few requests, out of the sync's turn."""

from __future__ import annotations

from app.errors import GitHubError, InputError
from app.knowledge.derive import derive_issues
from app.store.issues import add_repository, find_heads, find_repository, save_issues
from app.store.readings import links_from
from app.store.session import Store
from ingest.client import GitHubClient
from ingest.pipeline import Derive, derive_changed
from ingest.records import issue_record
from ingest.single import ask_issue, fetch_issue

LINKED_MAX = 8
"""Linked issues fetched with one: without a token GitHub allows 60 requests an hour."""


def fetch_with_links(
    store: Store, client: GitHubClient, repo: str, number: int, *, derive: Derive = derive_issues
) -> bool:
    """Fetch and store one issue, then the linked ones that are not stored; False if GitHub does not have it.

    What is linked is a help, not what was asked for: a refusal there ends the work quietly.

    Raises:
        GitHubError: GitHub refused or could not be reached when asked for the issue itself.
    """
    if not fetch_issue(store, client, repo, number, derive=derive):
        return False
    try:
        for linked in _missing(store, repo, number):
            _fetch_head(store, client, repo, linked, derive)
    except (GitHubError, InputError):
        return True
    return True


def _missing(store: Store, repo: str, number: int) -> list[int]:
    """Numbers of the same repository that the issue is linked to and that are not stored."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return []
        links = links_from(session, repo_id, number)
        wanted = list(dict.fromkeys(link.target_number for link in links if link.target_repo == repo))
        stored = {issue.number for issue in find_heads(session, repo_id, wanted)}
    return [one for one in wanted if one not in stored][:LINKED_MAX]


def _fetch_head(store: Store, client: GitHubClient, repo: str, number: int, derive: Derive) -> None:
    """Title, text and state of a linked one; the sync brings its comments."""
    row = ask_issue(client, repo, number).row
    if row is None:
        return
    record = issue_record(row, repo)
    with store.unit_of_work() as session:
        save_issues(session, add_repository(session, repo), [record])
    derive_changed(store, repo, [number], derive=derive)
