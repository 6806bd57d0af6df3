"""One issue on demand, out of turn; the cursor stays where it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.errors import GitHubError, InputError
from app.knowledge.derive import derive_issues
from app.store.comments import save_comments
from app.store.issues import add_repository, save_issues
from app.store.session import Store
from ingest.client import GitHubClient
from ingest.pipeline import Derive, derive_changed
from ingest.records import comment_record, issue_record


def fetch_issue(
    store: Store, client: GitHubClient, repo: str, number: int, *, derive: Derive = derive_issues
) -> bool:
    """Fetch and store one issue with its comments, out of turn; False if GitHub does not have it.

    Raises:
        GitHubError: GitHub refused or could not be reached.
    """
    row = client.get_object(f"/repos/{repo}/issues/{number}")
    if row is None or row.get("number") != number:
        return False
    comments: list[Any] = []
    page = client.get_page(f"/repos/{repo}/issues/{number}/comments", {"per_page": 100})
    comments.extend(page.items)
    while page.next_url:
        page = client.get_page(page.next_url)
        comments.extend(page.items)
    try:
        record = issue_record(row, repo, datetime.now(UTC))
        records = [comment_record(comment) for comment in comments]
    except InputError as fault:
        raise GitHubError(f"GitHub's answer about #{number} cannot be used: {fault}") from None
    with store.unit_of_work() as session:
        repo_id = add_repository(session, repo)
        save_issues(session, repo_id, [record])
        save_comments(session, repo_id, records)
    derive_changed(store, repo, [number], derive=derive)
    return True
