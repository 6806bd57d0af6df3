"""What belongs to one issue, for its page: pull requests, issues that people name, similar ones."""

from __future__ import annotations

from app.errors import NotFoundError
from app.knowledge.related import related
from app.knowledge.report import texts_of
from app.knowledge.report_graph import graph_of
from app.knowledge.report_shapes import Graph
from app.knowledge.report_sources import Sources
from app.store.comments import find_comments
from app.store.issues import find_repository, get_issue
from app.store.readings import find_facts
from app.store.session import Store

ALIKE_MAX = 4
_LOOKED_AT = 60
"""Relations among which the similar ones are looked for; those that people told come first."""


def issue_graph(store: Store, repo: str, number: int) -> Graph:
    """The graph of a stored issue; its first node is the issue.

    Raises:
        NotFoundError: nothing is stored under that number.
    """
    found = related(store, repo, number, limit=_LOOKED_AT)
    alike = [item for item in found if item.kind == "similar"][:ALIKE_MAX]
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            raise NotFoundError(f"{repo} is not stored")
        issue = get_issue(session, repo, number)
        comments = find_comments(session, repo_id, [number]).get(number, [])
        facts = find_facts(session, repo_id, [number]).get(number)
        sources = Sources(issue.url, texts_of(session, repo_id, issue, comments))
        return graph_of(session, repo_id, issue, repo, facts, sources, alike)
