"""What happened to an issue, in order of time; every date is GitHub's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.redaction.redact import mask_secrets
from app.extract.text.blocks import MAINTAINER_ASSOCIATIONS
from app.knowledge.issue.graph import key_of
from app.knowledge.issue.quotes import Sources, clipped
from app.knowledge.issue.shapes import Graph, Moment
from app.knowledge.issue.stored import StoredIssue
from app.knowledge.labels import SPEAKERS
from app.store.github.issues import find_heads
from app.store.records import CommentRecord, IssueRecord

COMMENTS_MAX = 40
WORDS_CHARS = 160


def timeline(session: Session, stored: StoredIssue, graph: Graph, sources: Sources) -> tuple[Moment, ...]:
    """The issue's own dates, its comments, and those of the pull requests in its graph."""
    moments = [
        *_own(stored.issue),
        *_comments(stored.issue, _telling(stored.comments, stored.facts), sources),
        *_pulls(session, stored.repo_id, graph),
    ]
    return tuple(sorted(moments, key=lambda moment: _utc(moment.at)))


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _own(issue: IssueRecord) -> Iterator[Moment]:
    if issue.created_at:
        yield Moment(at=issue.created_at, text="opened", source="GitHub", url=issue.url)
    if issue.closed_at:
        reason = (issue.state_reason or "").replace("_", " ")
        text = f"closed as {reason}" if reason else "closed"
        yield Moment(at=issue.closed_at, text=text, source="GitHub", url=issue.url)
    if issue.gone_at:
        why = f" ({issue.gone_reason})" if issue.gone_reason else ""
        yield Moment(at=issue.gone_at, text=f"no longer on GitHub{why}", source="GitHub", url=issue.url)


def _telling(comments: Sequence[CommentRecord], facts: Facts | None) -> list[CommentRecord]:
    """All comments, or where they are many those that tell a fact or are a maintainer's, then the newest."""
    if len(comments) <= COMMENTS_MAX:
        return list(comments)
    cited = {item.source for item in facts.evidence} if facts else set()
    ranked = sorted(
        enumerate(comments),
        key=lambda pair: (f"comment:{pair[1].id}" not in cited, _speaker(pair[1]) != "maintainer", -pair[0]),
    )
    return [comment for _, comment in ranked[:COMMENTS_MAX]]


def _comments(issue: IssueRecord, comments: Sequence[CommentRecord], sources: Sources) -> Iterator[Moment]:
    for comment in comments:
        if comment.created_at is None:
            continue
        is_reporter = comment.author is not None and comment.author == issue.author
        speaker = "reporter" if is_reporter else _speaker(comment)
        source = f"comment:{comment.id}"
        yield Moment(
            at=comment.created_at,
            text=f"comment by {SPEAKERS[speaker]}",
            source=source,
            url=sources.address(source),
            quote=clipped(mask_secrets(_first_words(comment.body)), WORDS_CHARS),
        )


def _speaker(comment: CommentRecord) -> str:
    return "maintainer" if comment.author_association in MAINTAINER_ASSOCIATIONS else "other"


def _first_words(text: str) -> str:
    """The first line that is no quotation and no fence."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith((">", "```", "<!--"))), "")


def _pulls(session: Session, repo_id: int, graph: Graph) -> Iterator[Moment]:
    """When the pull requests of the graph were opened, merged or closed."""
    repo = graph.nodes[0].repo
    wanted = [node.number for node in graph.nodes[1:] if node.kind == "pull_request" and node.repo == repo]
    for pull in find_heads(session, repo_id, wanted):
        ended = "merged" if pull.merged_at else "closed"
        for at, what in ((pull.created_at, "opened"), (pull.merged_at or pull.closed_at, ended)):
            if at:
                yield Moment(
                    at=at,
                    text=f"pull request #{pull.number} {what}",
                    source=key_of(repo, pull.number),
                    url=pull.url,
                )
