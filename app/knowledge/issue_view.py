"""One stored issue as it is shown: GitHub's facts and ours, with evidence; secrets masked."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmodel import Session

from app.errors import NotFoundError
from app.extract.facts import Evidence, Facts
from app.extract.redact import mask_secrets
from app.knowledge.answers import ClusterLine, IssueAnswer
from app.knowledge.fixstate import fix_states
from app.knowledge.masking import masked
from app.knowledge.votes import vote_counts
from app.starter.cards import parse_card
from app.store.cards import find_cards
from app.store.clusters import cluster_of, find_clusters, members_of
from app.store.comments import find_comments
from app.store.issues import find_repository, get_issue
from app.store.readings import find_facts
from app.store.records import CARD, IssueRecord
from app.store.session import Store

DATES_ESTIMATED = "x_dates_estimated"
"""With this a file of issues says that their dates are interpolated."""


def view_issue(
    store: Store, repo: str, number: int, *, vllm_version: str | None = None, versions_of: str | None = None
) -> IssueAnswer:
    """Everything known of one issue.

    Args:
        versions_of: the repository whose version `vllm_version` is; the issue's own where it is None.

    Raises:
        NotFoundError: nothing is stored under that number.
    """
    with store.reading() as session:
        issue = get_issue(session, repo, number)
        repo_id = find_repository(session, repo)
        if repo_id is None:
            raise NotFoundError(f"{repo} is not stored")
        facts = find_facts(session, repo_id, [number])
        fix = fix_states(
            session, repo_id, repo, [issue], facts, vllm_version=vllm_version, versions_of=versions_of
        )[number]
        body = issue.body
        if issue.origin == CARD and number in (cards := find_cards(session, repo_id, [number])):
            body = parse_card(cards[number]).log
        participants = _participants(session, repo_id, issue)
        cluster, votes = _cluster(session, repo_id, number), vote_counts(session, repo_id, number)
    known = facts.get(number)
    return IssueAnswer(
        repo=repo, number=number, url=issue.url, title=mask_secrets(issue.title), state=issue.state,
        state_reason=issue.state_reason, is_pull_request=issue.is_pull_request,
        origin="card" if issue.origin == CARD else "github", author=issue.author, labels=issue.labels,
        comments=issue.comments, reactions=issue.reactions, created_at=issue.created_at,
        updated_at=issue.updated_at, closed_at=issue.closed_at, fetched_at=issue.fetched_at,
        gone_at=issue.gone_at, gone_reason=issue.gone_reason, body=mask_secrets(body),
        participants=participants, dates_estimated=bool((issue.raw or {}).get(DATES_ESTIMATED)),
        cluster=cluster, votes=votes,
        facts=_masked(known, {"title": issue.title, "body": issue.body}) if known else None,
        fix=fix,
    )  # fmt: skip


def _participants(session: Session, repo_id: int, issue: IssueRecord) -> int | None:
    """How many people wrote here; None where a text or its writer is not stored."""
    if issue.author is None:
        return None
    comments = find_comments(session, repo_id, [issue.number]).get(issue.number, [])
    authors = {issue.author, *(comment.author for comment in comments)}
    return len(authors) if len(comments) >= issue.comments and None not in authors else None


def _cluster(session: Session, repo_id: int, number: int) -> ClusterLine | None:
    key = cluster_of(session, repo_id, [number]).get(number)
    found = find_clusters(session, repo_id, [key]).get(key) if key else None
    if key is None or found is None:
        return None
    size = len(members_of(session, repo_id, [found.id]).get(found.id, ()))
    return ClusterLine(id=found.id, text=mask_secrets(found.text), canonical=found.canonical, size=size)


def _masked(facts: Facts, sources: Mapping[str, str]) -> Facts:
    """Facts without secrets; blocks are of equal length, so spans stay true.

    A quote is cut out of its masked source where that is known: what makes a word a secret may stand
    in front of the quote.
    """
    shown = {name: mask_secrets(text) for name, text in sources.items()}
    evidence = tuple(_masked_evidence(item, shown.get(item.source)) for item in facts.evidence)
    return masked(facts.model_copy(update={"evidence": ()})).model_copy(update={"evidence": evidence})


def _masked_evidence(item: Evidence, source: str | None) -> Evidence:
    quote = mask_secrets(item.quote if source is None else source[item.start : item.end])
    if quote == item.quote:
        return item
    at = item.quote.find(item.value)
    value = mask_secrets(item.value) if at < 0 else quote[at : at + len(item.value)]
    return item.model_copy(update={"quote": quote, "value": value})
