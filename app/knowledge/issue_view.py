"""One stored issue as it is shown: GitHub's facts and ours, with evidence; secrets masked."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmodel import Session

from app.extract.facts import Evidence, Facts
from app.extract.redact import mask_secrets
from app.knowledge.answers import ClusterLine, IssueAnswer
from app.knowledge.fixstate import fix_states
from app.knowledge.masking import masked
from app.knowledge.stored_issue import StoredIssue, load_issue
from app.knowledge.votes import vote_counts
from app.store.clusters import find_cluster_with
from app.store.records import CARD
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
        stored = load_issue(session, repo, number)
        return tell_issue(session, stored, vllm_version=vllm_version, versions_of=versions_of)


def tell_issue(
    session: Session, stored: StoredIssue, *, vllm_version: str | None = None, versions_of: str | None = None
) -> IssueAnswer:
    """As `view_issue`, of an issue that was asked for already."""
    repo, repo_id, issue, facts = stored.repo, stored.repo_id, stored.issue, stored.facts
    number, body = issue.number, stored.body
    fix = fix_states(
        session, repo_id, repo, [issue], {number: facts} if facts else {},
        vllm_version=vllm_version, versions_of=versions_of,
    )[number]  # fmt: skip
    shown = {"title": mask_secrets(issue.title), "body": mask_secrets(issue.body)}
    return IssueAnswer(
        repo=repo, number=number, url=issue.url, title=shown["title"], state=issue.state,
        state_reason=issue.state_reason, is_pull_request=issue.is_pull_request,
        origin="card" if issue.origin == CARD else "github", author=issue.author, labels=issue.labels,
        comments=issue.comments, reactions=issue.reactions, created_at=issue.created_at,
        updated_at=issue.updated_at, closed_at=issue.closed_at, fetched_at=issue.fetched_at,
        gone_at=issue.gone_at, gone_reason=issue.gone_reason,
        body=shown["body"] if body == issue.body else mask_secrets(body),
        participants=_participants(stored), dates_estimated=bool((issue.raw or {}).get(DATES_ESTIMATED)),
        cluster=_cluster(session, repo_id, number), votes=vote_counts(session, repo_id, number),
        facts=_masked(facts, shown) if facts else None, fix=fix,
    )  # fmt: skip


def _participants(stored: StoredIssue) -> int | None:
    """How many people wrote here; None where a text or its writer is not stored."""
    authors = {stored.issue.author, *(comment.author for comment in stored.comments)}
    is_whole = len(stored.comments) >= stored.issue.comments
    return len(authors) if is_whole and None not in authors else None


def _cluster(session: Session, repo_id: int, number: int) -> ClusterLine | None:
    found = find_cluster_with(session, repo_id, number)
    if found is None:
        return None
    cluster, size = found
    return ClusterLine(
        id=cluster.id, text=mask_secrets(cluster.text), canonical=cluster.canonical, size=size
    )  # fmt: skip


def _masked(facts: Facts, shown: Mapping[str, str]) -> Facts:
    """Facts without secrets; blocks are of equal length, so spans stay true.

    A quote is cut out of its masked source where that is known: what makes a word a secret may stand
    in front of the quote.

    Args:
        shown: masked texts, by the names that evidence calls them.
    """
    evidence = tuple(_masked_evidence(item, shown.get(item.source)) for item in facts.evidence)
    return masked(facts.model_copy(update={"evidence": ()})).model_copy(update={"evidence": evidence})


def _masked_evidence(item: Evidence, source: str | None) -> Evidence:
    quote = mask_secrets(item.quote if source is None else source[item.start : item.end])
    if quote == item.quote:
        return item
    at = item.quote.find(item.value)
    value = mask_secrets(item.value) if at < 0 else quote[at : at + len(item.value)]
    return item.model_copy(update={"quote": quote, "value": value})
