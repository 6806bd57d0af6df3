"""The page of one issue: what helps, the fix, the range, the error, what is linked, votes, its own text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from app.errors import NotFoundError
from app.knowledge.answers import IssueAnswer
from app.knowledge.issue_sight import IssueSight
from app.knowledge.report_shapes import EdgeKind, Graph, GraphEdge
from app.web.answering import VARY, markdown_answer, wants_markdown
from app.web.api import NamedRepo, Number, Version
from app.web.citations import Citations
from app.web.deps import Desk, DeskDep
from app.web.graph_picture import draw
from app.web.render import page_address, render_page
from app.web.repo_switch import with_repo
from app.web.same_origin import OWN_REFERRER
from app.web.unknowns import unknowns
from app.web.version_line import version_line
from app.web.visitor import Visitor, visitor

router = APIRouter(include_in_schema=False)

_READ = ["GET", "HEAD"]
_OF_PULLS: frozenset[EdgeKind] = frozenset({"introduced_by", "fixed_by", "fixes"})

VisitorDep = Annotated[Visitor, Depends(visitor)]


@router.api_route("/issues/{number}", methods=_READ)
def issue_page(
    request: Request, number: Number, desk: DeskDep, visitor: VisitorDep, vllm_version: Version = None
) -> Response:
    """One issue of the default repository."""
    return _issue(request, desk, desk.settings.default_repo, number, visitor, vllm_version)


@router.api_route("/r/{owner}/{name}/issues/{number}", methods=_READ)
def repo_issue_page(
    request: Request,
    repo: NamedRepo,
    number: Number,
    desk: DeskDep,
    visitor: VisitorDep,
    vllm_version: Version = None,
) -> Response:
    """One issue of any stored repository."""
    return _issue(request, desk, repo, number, visitor, vllm_version)


def _issue(
    request: Request, desk: Desk, repo: str, number: int, visitor: Visitor, vllm_version: str | None
) -> Response:
    yours = (vllm_version or "").strip() or None
    asked = {"vllm_version": yours, "versions_of": desk.settings.default_repo}
    try:
        if wants_markdown(request.headers.get("accept", "")):
            told = desk.knowledge.view_issue(desk.store, repo, number, **asked)
            return markdown_answer(desk.knowledge.issue_markdown(told), None)
        seen = desk.knowledge.see_issue(desk.store, repo, number, client=visitor.key, **asked)
    except NotFoundError:
        raise NotFoundError(
            f"#{number} of {repo} is not stored. Run `triage sync`, or load it with `triage import`."
        ) from None
    return _page(desk, repo, seen, yours)


def _page(desk: Desk, repo: str, seen: IssueSight, yours: str | None) -> Response:
    issue, linked = seen.issue, seen.graph
    overview = desk.knowledge.overview(desk.store, repo)
    address = page_address(issue.repo, issue.number, desk.settings.default_repo)
    facts = issue.facts
    mine = yours if repo == desk.settings.default_repo else None  # it has no place among other versions
    return render_page(
        "issue.html",
        headers={**VARY, **OWN_REFERRER},
        issue=issue,
        facts=facts,
        cites=Citations(issue),
        yours=yours,
        stations=version_line(facts.regression, mine, overview.newest_release) if facts else (),
        missing=unknowns(facts, issue.fix) if facts and facts.is_failure else (),
        linked=linked,
        picture=draw(linked, desk.settings.repo),
        relations=_relations(linked),
        votes=seen.votes,
        vote_address=f"{address}/votes",
        json_address=_json_address(issue, desk.settings.default_repo),
        markdown_address=f"{address}.md",
        overview=overview,
        repo=repo,
        default_repo=desk.settings.default_repo,
        at=partial(with_repo, desk.settings, repo=repo),
    )


def _relations(graph: Graph) -> tuple[tuple[str, list[GraphEdge]], ...]:
    """The edges by what stands at their other end."""
    pulls = [edge for edge in graph.edges if _is_of_pull(graph, edge)]
    alike = [edge for edge in graph.edges if edge.basis == "likeness" and edge not in pulls]
    return (
        ("Pull requests", pulls),
        ("Named by people", _without(graph.edges, (*pulls, *alike))),
        ("Similar issues", alike),
    )


def _is_of_pull(graph: Graph, edge: GraphEdge) -> bool:
    return edge.kind in _OF_PULLS or graph.other_end(edge).kind == "pull_request"


def _without(edges: Iterable[GraphEdge], others: Iterable[GraphEdge]) -> list[GraphEdge]:
    left_out = list(others)
    return [edge for edge in edges if edge not in left_out]


def _json_address(issue: IssueAnswer, default_repo: str) -> str:
    short = issue.repo == default_repo
    return f"/api/v1/issues/{issue.number}" if short else f"/api/v1/repos/{issue.repo}/issues/{issue.number}"
