"""What belongs to one issue, for its page: pull requests, issues that people name, similar ones."""

from __future__ import annotations

from sqlmodel import Session

from app.knowledge.related import relations
from app.knowledge.report_graph import graph_of
from app.knowledge.report_shapes import Graph
from app.knowledge.report_sources import Sources
from app.knowledge.stored_issue import StoredIssue, load_links

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
