"""How many rows a long walk will bring, about: for the time left, not for any decision.

GitHub's lists do not say how long they are. Issues and pull requests share one row of numbers, so the newest
number tells; one request asks for it, and only when a walk has shown itself to be long. How many comments
there are stands in the issues.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.errors import GitHubError
from app.store.github.issues import find_repository
from app.store.github.sync_state import count_stored, fresh_as_of
from app.store.session import Store
from ingest.github.client import GitHubClient
from ingest.github.walk import PAGE_ROWS


@dataclass
class Expected:
    """Ask it with a stage and the rows that came; it answers None where it cannot know.

    Args:
        store: the open archive.
        client: as the run uses it; without a token no request is spent on this.
        repo: `owner/name`.
        full: everything is walked again.
    """

    store: Store
    client: GitHubClient
    repo: str
    full: bool = False
    _found: dict[str, int | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._before = self._count()
        self._is_first = self._was_never_complete()

    def __call__(self, stage: str, done: int) -> int | None:
        """How many rows the stage will have brought at its end."""
        if stage not in {"issues", "comments"} or not (self._is_first or self.full):
            return None
        if stage not in self._found and done >= PAGE_ROWS:
            self._found[stage] = self._ask(stage)
        return self._found.get(stage)

    def _ask(self, stage: str) -> int | None:
        if stage == "comments":
            return self._count()["comments_told"] - (0 if self.full else self._before["comments"])
        if self.full and not self._is_first:
            return self._before["issues"]
        newest = self._newest_number()
        return newest - (0 if self.full else self._before["issues"]) if newest else None

    def _newest_number(self) -> int | None:
        if not self.client.has_token:
            return None
        question: dict[str, str | int] = {
            "state": "all",
            "sort": "created",
            "direction": "desc",
            "per_page": 1,
        }
        try:
            page = self.client.get_page(f"/repos/{self.repo}/issues", question)
        except GitHubError:
            return None
        number = page.items[0].get("number") if page.items and isinstance(page.items[0], dict) else None
        return number if isinstance(number, int) else None

    def _count(self) -> dict[str, int]:
        with self.store.reading() as session:
            repo_id = find_repository(session, self.repo)
            return count_stored(session, repo_id) if repo_id else dict.fromkeys(_NAMES, 0)

    def _was_never_complete(self) -> bool:
        with self.store.reading() as session:
            repo_id = find_repository(session, self.repo)
            return repo_id is None or fresh_as_of(session, repo_id) is None


_NAMES = ("issues", "comments", "comments_told")
