"""One stored issue: GitHub's facts and ours with evidence; for its page also its graph and its votes.

All texts are masked for secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Evidence, Facts, Frozen
from app.extract.redaction.redact import mask_secrets
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.knowledge.issue.findings import Findings, find_findings
from app.knowledge.issue.relations import Graph, issue_graph
from app.knowledge.issue.stored import StoredIssue, load_issue
from app.knowledge.issue.votes import RemedyVotes, Signal, VoteCount, count_remedy_votes, vote_counts
from app.knowledge.text.masking import masked
from app.store.derived.clusters import find_cluster_with
from app.store.records import CARD
from app.store.session import Store


class GitHubFacts(Frozen):
    """What GitHub says of an issue; `body` is masked for display."""

    repo: str
    number: int
    url: str
    title: str
    state: str
    state_reason: str | None
    is_pull_request: bool
    origin: Literal["card", "github"]
    author: str | None
    labels: tuple[str, ...]
    comments: int
    reactions: int
    created_at: datetime | None
    updated_at: datetime | None
    closed_at: datetime | None
    fetched_at: datetime | None
    gone_at: datetime | None = None
    gone_reason: str | None = None
    participants: int | None = Field(
        None, description="people who wrote the issue and its comments; null unless all of them are stored"
    )
    dates_estimated: bool = Field(
        False, description="whether the file it came from says that its dates are estimates"
    )
    body: str


class ClusterLine(Frozen):
    """The failure that an issue reports; `size` counts its reports, this one among them."""

    id: str
    text: str
    canonical: int
    size: int


class IssueAnswer(GitHubFacts):
    """One issue: GitHub's facts and ours, with evidence. All texts are masked for display."""

    facts: Facts | None
    fix: FixView
    cluster: ClusterLine | None = Field(None, description="null for what reports no failure")
    votes: dict[Signal, VoteCount] = Field(
        default_factory=dict, description="for each signal how many visitors are for it, and against"
    )


ALIKE_MAX = 4
DATES_ESTIMATED = "x_dates_estimated"
"""With this a file of issues says that their dates are interpolated."""


@dataclass(frozen=True, slots=True)
class IssuePageData:
    """One issue, what belongs to it, and the votes on its remedies with the visitor's own."""

    issue: IssueAnswer
    graph: Graph
    remedy_votes: dict[str, RemedyVotes]
    findings: Findings


def load_issue_page(
    store: Store,
    repo: str,
    number: int,
    *,
    cookie: str | None = None,
    vllm_version: str | None = None,
    versions_of: str | None = None,
) -> IssuePageData:
    """What a visitor sees of an issue, as `view_issue`; `cookie` is that of `vote_on_remedy`."""
    with store.reading() as session:
        stored = load_issue(session, repo, number)
        issue = build_answer(session, stored, vllm_version=vllm_version, versions_of=versions_of)
        votes = count_remedy_votes(session, stored.repo_id, repo, number, cookie=cookie)
        graph = issue_graph(session, stored, stored.sources(), alike_max=ALIKE_MAX)
        return IssuePageData(issue, graph, votes, find_findings(stored.issue.body, issue.facts))


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
        return build_answer(session, stored, vllm_version=vllm_version, versions_of=versions_of)


def build_answer(
    session: Session, stored: StoredIssue, *, vllm_version: str | None = None, versions_of: str | None = None
) -> IssueAnswer:
    """The answer for an issue that was loaded; as `view_issue`."""
    repo, repo_id, issue, facts = stored.repo, stored.repo_id, stored.issue, stored.facts
    number = issue.number
    fixes = fix_states(
        session,
        repo_id,
        repo,
        [issue],
        {number: facts} if facts else {},
        vllm_version=vllm_version,
        versions_of=versions_of,
    )
    texts = {"title": mask_secrets(issue.title), "body": mask_secrets(issue.body)}
    return IssueAnswer.based_on(
        issue,
        repo=repo,
        title=texts["title"],
        body=texts["body"] if stored.body == issue.body else mask_secrets(stored.body),
        origin="card" if issue.origin == CARD else "github",
        participants=_participants(stored),
        dates_estimated=bool((issue.raw or {}).get(DATES_ESTIMATED)),
        cluster=_cluster(session, repo_id, number),
        votes=vote_counts(session, repo_id, number),
        facts=_masked(facts, texts) if facts else None,
        fix=fixes[number],
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
    return ClusterLine.based_on(cluster, text=mask_secrets(cluster.text), size=size)


def _masked(facts: Facts, texts: Mapping[str, str]) -> Facts:
    """Facts without secrets; blocks are of equal length, so spans stay true.

    A quote is cut out of its masked source in `texts` if it is there: the mark of a secret may precede it.
    """
    evidence = tuple(_masked_evidence(item, texts.get(item.source)) for item in facts.evidence)
    return masked(facts.model_copy(update={"evidence": ()})).model_copy(update={"evidence": evidence})


def _masked_evidence(item: Evidence, source: str | None) -> Evidence:
    quote = mask_secrets(item.quote if source is None else source[item.start : item.end])
    if quote == item.quote:
        return item
    at = item.quote.find(item.value)
    value = mask_secrets(item.value) if at < 0 else quote[at : at + len(item.value)]
    return item.model_copy(update={"quote": quote, "value": value})
