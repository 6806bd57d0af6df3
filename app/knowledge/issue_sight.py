"""All that the page of one issue shows, out of one view of the data: the issue, its graph, its votes."""

from __future__ import annotations

from dataclasses import dataclass

from app.knowledge.answers import IssueAnswer
from app.knowledge.issue_graph import issue_graph
from app.knowledge.issue_view import tell_issue
from app.knowledge.report_shapes import Graph
from app.knowledge.stored_issue import load_issue
from app.knowledge.votes import IssueVotes, own_votes
from app.store.session import Store


@dataclass(frozen=True, slots=True)
class IssueSight:
    """One issue, what belongs to it, and the votes on it with the visitor's own."""

    issue: IssueAnswer
    graph: Graph
    votes: IssueVotes


def see_issue(
    store: Store, repo: str, number: int, *, client: str, vllm_version: str | None = None,
    versions_of: str | None = None,
) -> IssueSight:  # fmt: skip
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
