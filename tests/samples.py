"""Records and logs of our own, in the shapes that GitHub and vLLM give them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.store.records import CommentRecord, IssueRecord, ReleaseRecord

REPO = "vllm-project/vllm"
EARLY = datetime(2026, 4, 8, 9, tzinfo=UTC)
LATE = datetime(2026, 4, 9, 9, tzinfo=UTC)


def an_issue(number: int, **fields: Any) -> IssueRecord:
    """An open issue as GitHub tells it."""
    told: dict[str, Any] = {
        "title": f"[Bug]: issue {number}", "body": "It fails.", "state": "open", "created_at": EARLY,
        "updated_at": EARLY, "url": f"https://github.com/{REPO}/issues/{number}",
    }  # fmt: skip
    told |= fields
    told.setdefault("raw", {"number": number, "title": told["title"], "body": told["body"], "state": told["state"]})
    return IssueRecord(number=number, **told)


def a_pull(number: int, **fields: Any) -> IssueRecord:
    """A pull request; merged where `merged_at` is given."""
    told = {"title": f"Pull {number}", "body": "", "state": "closed" if fields.get("merged_at") else "open"}
    return an_issue(number, **{**told, "is_pull_request": True, **fields})


def a_comment(key: int, issue_number: int, body: str, **fields: Any) -> CommentRecord:
    told: dict[str, Any] = {"author": "someone", "created_at": EARLY, "updated_at": EARLY, **fields}
    return CommentRecord(key, issue_number, body, **told)


def a_release(tag: str, *pulls: int, **fields: Any) -> ReleaseRecord:
    told: dict[str, Any] = {"name": tag, "notes": "", "is_prerelease": False, "published_at": EARLY, **fields}
    return ReleaseRecord(tag=tag, pulls=pulls, **told)
