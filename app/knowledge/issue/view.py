"""What belongs to one issue, for its page: pull requests, issues that people name, similar ones.

All that the page of one issue shows, out of one view of the data: the issue, its graph, its votes.

One stored issue as it is shown: GitHub's facts and ours, with evidence; secrets masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmodel import Session

from app.extract.facts import Evidence, Facts
from app.extract.redaction.redact import mask_secrets
from app.knowledge.fix.state import fix_states
from app.knowledge.issue.graph import graph_of
from app.knowledge.issue.quotes import Sources
from app.knowledge.issue.relations import relations
from app.knowledge.issue.shapes import ClusterLine, Graph, IssueAnswer
from app.knowledge.issue.stored import StoredIssue, load_issue, load_links
from app.knowledge.issue.votes import IssueVotes, own_votes, vote_counts
from app.knowledge.text.masking import masked
from app.store.derived.clusters import find_cluster_with
from app.store.records import CARD
from app.store.session import Store

ALIKE_MAX = 4
_LOOKED_AT = 60
"""Relations among which the similar ones are looked for; those that people told come first."""


def issue_graph(session: Session, stored: StoredIssue) -> Graph:
    """The graph of a stored issue; its first node is the issue."""
    number = stored.issue.number
    links = load_links(session, stored.repo_id, stored.repo, number)
    found = relations(session, stored.repo_id, stored.repo, number, links)[:_LOOKED_AT]
    alike = [item for item in found if item.kind == "similar"][:ALIKE_MAX]
    return graph_of(session, stored, links, Sources(stored.issue.url, stored.texts()), alike)


@dataclass(frozen=True, slots=True)
class IssueSight:
    """One issue, what belongs to it, and the votes on it with the visitor's own."""

    issue: IssueAnswer
    graph: Graph
    votes: IssueVotes


def see_issue(
    store: Store,
    repo: str,
    number: int,
    *,
    client: str,
    vllm_version: str | None = None,
    versions_of: str | None = None,
) -> IssueSight:
    """What a visitor sees of an issue.

    Args:
        client: what tells this visitor from others; it is hashed at once.
        versions_of: the repository whose version `vllm_version` is; the issue's own where it is None.

    Raises:
        NotFoundError: nothing is stored under that number.
    """
    with store.reading() as session:
        stored = load_issue(session, repo, number)
        issue = tell_issue(session, stored, vllm_version=vllm_version, versions_of=versions_of)
        yours = own_votes(session, stored.repo_id, repo, number, client=client)
        votes = IssueVotes(repo=repo, number=number, votes=issue.votes, yours=yours)
        return IssueSight(issue, issue_graph(session, stored), votes)


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
        session,
        repo_id,
        repo,
        [issue],
        {number: facts} if facts else {},
        vllm_version=vllm_version,
        versions_of=versions_of,
    )[number]
    shown = {"title": mask_secrets(issue.title), "body": mask_secrets(issue.body)}
    return IssueAnswer(
        repo=repo,
        number=number,
        url=issue.url,
        title=shown["title"],
        state=issue.state,
        state_reason=issue.state_reason,
        is_pull_request=issue.is_pull_request,
        origin="card" if issue.origin == CARD else "github",
        author=issue.author,
        labels=issue.labels,
        comments=issue.comments,
        reactions=issue.reactions,
        created_at=issue.created_at,
        updated_at=issue.updated_at,
        closed_at=issue.closed_at,
        fetched_at=issue.fetched_at,
        gone_at=issue.gone_at,
        gone_reason=issue.gone_reason,
        body=shown["body"] if body == issue.body else mask_secrets(body),
        participants=_participants(stored),
        dates_estimated=bool((issue.raw or {}).get(DATES_ESTIMATED)),
        cluster=_cluster(session, repo_id, number),
        votes=vote_counts(session, repo_id, number),
        facts=_masked(facts, shown) if facts else None,
        fix=fix,
    )


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
    return ClusterLine(id=cluster.id, text=mask_secrets(cluster.text), canonical=cluster.canonical, size=size)


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
