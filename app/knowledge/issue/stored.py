"""What is stored of one issue, asked for once, whatever is then made of it; nothing here is masked."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmodel import Session

from app.extract.facts import Facts
from app.knowledge.issue.quotes import Sources
from app.starter.cards import parse_card
from app.store.derived.readings import all_links_to, find_facts, links_from
from app.store.github.cards import find_cards
from app.store.github.comments import find_comments
from app.store.github.issues import get_issue
from app.store.records import CARD, CommentRecord, IssueRecord, LinkRecord


@dataclass(frozen=True, slots=True)
class StoredIssue:
    """An issue with its people's words; `facts` is None while it is not read, `card` where it has none."""

    repo: str
    repo_id: int
    issue: IssueRecord
    facts: Facts | None
    comments: tuple[CommentRecord, ...]
    card: str | None

    @property
    def body(self) -> str:
        """The text of the issue, or the log of its card while only that is known."""
        if self.card is not None and self.issue.origin == CARD:
            return parse_card(self.card).log
        return self.issue.body

    def sources(self) -> Sources:
        """The texts that evidence points into, with that evidence."""
        card = {} if self.card is None else {"card": self.card}
        comments = {f"comment:{comment.id}": comment.body for comment in self.comments}
        texts = {"title": self.issue.title, "body": self.body, **card, **comments}
        return Sources(self.issue.url, texts, self.facts.evidence if self.facts else ())


@dataclass(frozen=True, slots=True)
class LinkEnds:
    """The links from an issue, and those at it: (key of the repository, number, kind, reason)."""

    out: tuple[LinkRecord, ...]
    into: tuple[tuple[int, int, str, str], ...]


def load_issue(session: Session, repo: str, number: int) -> StoredIssue:
    """What stands under a number.

    Raises:
        NotFoundError: nothing does.
    """
    repo_id, issue = get_issue(session, repo, number)
    return StoredIssue(
        repo,
        repo_id,
        issue,
        facts=find_facts(session, repo_id, [number]).get(number),
        comments=tuple(find_comments(session, repo_id, [number]).get(number, ())),
        card=find_cards(session, repo_id, [number]).get(number),
    )


def load_links(session: Session, repo_id: int, repo: str, number: int) -> LinkEnds:
    """The links of an issue, of all kinds, at both ends."""
    return LinkEnds(tuple(links_from(session, repo_id, number)), tuple(all_links_to(session, repo, number)))
