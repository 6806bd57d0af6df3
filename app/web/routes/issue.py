"""Single issues as JSON, Markdown and page; their relations; votes on issues and remedies."""

import re
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict

from app.errors import InputError, NotFoundError
from app.knowledge.issue.relations import EdgeKind, Graph, GraphEdge, likeness_of, related
from app.knowledge.issue.report import issue_markdown, main_unknowns
from app.knowledge.issue.view import IssueAnswer, IssuePageData, load_issue_page, view_issue
from app.knowledge.issue.votes import IssueVotes, Signal, Vote, remedy_id, vote, vote_on_remedy
from app.knowledge.stack.cases import affects_issues
from app.knowledge.stack.stack import Stack
from app.web.answers.context import RepoContext
from app.web.answers.negotiate import MARKDOWN_TYPE, VARY, ReplyDep, markdown_answer, wants
from app.web.answers.openapi import api_router, json_body, markdown_too, problems
from app.web.answers.parameters import Number, Repo, StackDep, Version, issue_routes
from app.web.answers.problems import error_page
from app.web.answers.schemas import NUMBER_MAX, IssueDocument, RelatedList, issue_document
from app.web.body import SmallForm, json_reader
from app.web.deps import Services, ServicesDep
from app.web.middleware.client import ClientDep
from app.web.middleware.origins import OWN_REFERRER, require_same_origin
from app.web.views.evidence import Citations
from app.web.views.render import api_address, page_address
from app.web.views.version_line import version_line

router = api_router("issues")

Limit = Annotated[int, Query(ge=1, le=200, description="maximum number of items")]
With = Annotated[
    int | None, Query(alias="with", ge=1, le=NUMBER_MAX, description="this issue only, linked or not")
]


@issue_routes(
    router,
    ids=("get_issue", "get_repo_issue"),
    summary="Get an issue with its extracted facts and evidence",
    response_model=IssueDocument,
    responses=problems(404) | markdown_too(),
)
def get_issue(
    reply: ReplyDep, repo: Repo, number: Number, services: ServicesDep, vllm_version: Version = None
) -> Response:
    """Return what one issue reports.

    That is its error, versions, hardware, workarounds with outcome, cause, regression range and fix state;
    `evidence` quotes the text each value was extracted from. While `read` is false, only GitHub's own fields
    are set. With `vllm_version`, `fix.for_you` says what the fix means for that version. With
    `Accept: text/markdown`, or at `/issues/{number}.md`, the answer is Markdown.
    """
    issue = _view(services, repo, number, vllm_version)
    return reply(issue_document(issue), markdown=lambda: issue_markdown(issue))


@issue_routes(
    router,
    "/related",
    ids=("list_related_issues", "list_repo_related_issues"),
    summary="List related issues and pull requests of an issue",
    response_model=RelatedList,
    responses=problems(404),
)
def get_related(
    reply: ReplyDep,
    repo: Repo,
    number: Number,
    services: ServicesDep,
    limit: Limit = 20,
    with_: With = None,
) -> Response:
    """List duplicates, fixing and causing pull requests, mentions, and issues with similar text.

    Stated relations come first. `band` and `score` are set only if `kind` is `similar`: the score is the
    calibrated probability that both are the same failure. `with` returns one pair only, linked or not.
    """
    if with_ is not None:
        items = likeness_of(services.store, repo, number, with_)
    else:
        items = related(services.store, repo, number, limit=limit)
    return reply(RelatedList(items=items, total=len(items)))


@issue_routes(router, ".md")
def issue_as_markdown(
    reply: ReplyDep, repo: Repo, number: Number, services: ServicesDep, vllm_version: Version = None
) -> Response:
    """The Markdown twin of an issue's page."""
    return markdown_answer(issue_markdown(_view(services, repo, number, vllm_version)), reply.max_chars)


def _view(services: Services, repo: str, number: int, vllm_version: str | None) -> IssueAnswer:
    return view_issue(
        services.store, repo, number, vllm_version=vllm_version, versions_of=services.default_repo
    )


_OF_PULLS: frozenset[EdgeKind] = frozenset({"introduced_by", "fixed_by", "fixes"})


@issue_routes(router)
def issue_page(
    request: Request,
    repo: Repo,
    number: Number,
    services: ServicesDep,
    stack: StackDep,
    vllm_version: Version = None,
) -> Response:
    """The page of one issue; with `?stack=` it says whether the issue affects that stack."""
    try:
        if wants(request.headers.get("accept", ""), MARKDOWN_TYPE):
            return markdown_answer(issue_markdown(_view(services, repo, number, vllm_version)), None)
        seen = load_issue_page(
            services.store,
            repo,
            number,
            cookie=request.cookies.get(VISITOR_COOKIE),
            vllm_version=vllm_version,
            versions_of=services.default_repo,
        )
    except NotFoundError:
        wanted = f"{repo}#{number}" if repo in services.settings.repo else ""
        fault = f"#{number} of {repo} is not stored" + (" yet." if wanted else ".")
        return error_page(404, fault, title="Not stored", headers=OWN_REFERRER, wanted=wanted)
    return _page(services, repo, seen, vllm_version, stack)


def _page(
    services: Services, repo: str, seen: IssuePageData, yours: str | None, stack: Stack | None
) -> Response:
    issue, linked = seen.issue, seen.graph
    address = page_address(issue.repo, issue.number, services.default_repo)
    facts = issue.facts
    yours = yours or (stack.vllm if stack else None)
    mine = yours if repo == services.default_repo else None  # the version is the default repository's
    return RepoContext(services, repo, stack).render(
        "issue.html",
        headers={**VARY, **OWN_REFERRER},
        issue=issue,
        facts=facts,
        affects=affects_issues(services.store, repo, stack, (issue.number,)).get(issue.number)
        if stack and facts and facts.is_failure
        else None,
        findings=issue.findings,
        cites=Citations(issue),
        yours=yours,
        stations=version_line(facts.regression, mine, services.overview(repo).newest_release)
        if facts
        else (),
        missing=main_unknowns(facts, issue.fix) if facts and facts.is_failure else (),
        linked=linked,
        relations=_group_edges(linked),
        remedy_votes=seen.remedy_votes,
        remedy_id=remedy_id,
        vote_address=f"{address}/votes",
        json_address=api_address(issue.repo, issue.number, services.default_repo),
        markdown_address=f"{address}.md",
    )


def _group_edges(graph: Graph) -> tuple[tuple[str, list[GraphEdge]], ...]:
    """Group the edges: pull requests, issues named by people, similar issues."""
    pulls = [
        edge for edge in graph.edges if edge.kind in _OF_PULLS or graph.other_end(edge).kind == "pull_request"
    ]
    others = [edge for edge in graph.edges if edge not in pulls]
    named = [edge for edge in others if edge.basis != "likeness"]
    alike = [edge for edge in others if edge.basis == "likeness"]
    return ("Pull requests", pulls), ("Named by people", named), ("Similar issues", alike)


BODY_BYTES = 4096
VISITOR_COOKIE = "visitor"
COOKIE_S = 365 * 24 * 3600
_HELPED: dict[str, Vote] = {"1": 1, "-1": -1, "0": 0}


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):  # True == 1 and False == 0
        raise ValueError("must be 1, -1 or 0")
    return value


class VoteRequest(BaseModel):
    """A visitor's word on an issue; a second one on the same signal takes the first one's place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    signal: Signal
    value: Annotated[Vote, BeforeValidator(_reject_bool)]


async def _form_vote(form: SmallForm) -> tuple[str, Vote]:
    remedy, _, value = form.get("vote", "").partition(":")
    if not re.fullmatch(r"[0-9a-f]{16}", remedy) or value not in _HELPED:
        raise InputError("vote: press one of the buttons below a remedy.")
    return remedy, _HELPED[value]


JsonVote = Annotated[VoteRequest, Depends(json_reader(VoteRequest, BODY_BYTES, "vote"))]
FormVote = Annotated[tuple[str, Vote], Depends(_form_vote)]


@issue_routes(
    router,
    "/votes",
    ids=("vote", "vote_in_repo"),
    summary="Vote on an issue; a vote of 0 withdraws it",
    methods=("POST",),
    responses=problems(400, 404, 413, 415),
    openapi_extra=json_body(VoteRequest.model_json_schema()),
)
async def post_vote(
    repo: Repo, number: Number, services: ServicesDep, sent: JsonVote, client: ClientDep
) -> IssueVotes:
    """Vote on a stored issue, one vote per visitor and signal. Returns the totals.

    Visitors are distinguished by IP address, stored only as a keyed hash.
    """
    return await services.write(vote, repo, number, sent.signal, sent.value, client=client)


@issue_routes(router, "/votes", methods=("POST",), dependencies=[Depends(require_same_origin)])
async def send_vote(
    request: Request, repo: Repo, number: Number, services: ServicesDep, sent: FormVote, client: ClientDep
) -> RedirectResponse:
    """The buttons below a remedy; the visitor gets a signed cookie with the first vote."""
    remedy, value = sent
    cookie = await services.write(
        vote_on_remedy, repo, number, remedy, value, cookie=request.cookies.get(VISITOR_COOKIE), client=client
    )
    answer = RedirectResponse(f"{page_address(repo, number, services.default_repo)}#rem", status_code=303)
    answer.set_cookie(
        VISITOR_COOKIE,
        cookie,
        max_age=COOKIE_S,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return answer
