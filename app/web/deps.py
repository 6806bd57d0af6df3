"""What an endpoint needs, handed to it: the settings, the open archive, and the room behind the desk.

Who may change what all see: the holder of TRIAGE_ADMIN_TOKEN.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.config import Settings
from app.errors import TriageError
from app.knowledge.cluster.growth import newest_whole_week
from app.knowledge.cluster.judgements import Judgement, judge, judgements, undo
from app.knowledge.cluster.shapes import ClusterDetail, ClusterPage
from app.knowledge.cluster.view import clusters, current_id, view_cluster
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.excerpts import ExcerptLine, excerpt
from app.knowledge.diagnosis.kept_logs import Kept, KeptLog, forget_log, keep_log, view_kept_log
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.digest.digest import archive, make_digest
from app.knowledge.digest.feed import FeedEntry, feed_entries
from app.knowledge.digest.shapes import ArchivePage, Digest
from app.knowledge.digest.tables import digest_markdown
from app.knowledge.freshness import Overview, overview
from app.knowledge.home import Home, home
from app.knowledge.iso_week import IsoWeek
from app.knowledge.issue.browse import browse
from app.knowledge.issue.facets import IssuePage
from app.knowledge.issue.markdown import issue_markdown, report_markdown
from app.knowledge.issue.relations import RelatedItem, likeness_of, related
from app.knowledge.issue.report import make_report
from app.knowledge.issue.shapes import IssueAnswer, Report
from app.knowledge.issue.view import IssueSight, see_issue, view_issue
from app.knowledge.issue.votes import IssueVotes, vote
from app.knowledge.version.known_issues import known_issues
from app.knowledge.version.regressions import regression_versions, regressions
from app.knowledge.version.shapes import KnownPage, RegressionPage, VersionCount
from app.store.session import Store

# MERGE: settings as get_settings


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The questions the front desk may ask; a test puts others in their place."""

    diagnose: Callable[..., Diagnosis] = diagnose
    excerpt: Callable[[str, Diagnosis], tuple[ExcerptLine, ...]] = excerpt
    view_issue: Callable[..., IssueAnswer] = view_issue
    see_issue: Callable[..., IssueSight] = see_issue
    issue_markdown: Callable[[IssueAnswer], str] = issue_markdown
    overview: Callable[[Store, str], Overview] = overview
    home: Callable[[Store, str], Home] = home
    browse: Callable[..., IssuePage] = browse
    related: Callable[..., tuple[RelatedItem, ...]] = related
    likeness_of: Callable[..., tuple[RelatedItem, ...]] = likeness_of
    markdown: Callable[[Diagnosis], str] = diagnosis_markdown
    report: Callable[..., Report] = make_report
    report_markdown: Callable[[Report], str] = report_markdown
    keep_log: Callable[..., Kept] = keep_log
    view_kept_log: Callable[[Store, str], KeptLog] = view_kept_log
    forget_log: Callable[[Store, str, str], None] = forget_log
    known_issues: Callable[..., KnownPage] = known_issues
    regressions: Callable[..., RegressionPage] = regressions
    regression_versions: Callable[[Store, str], tuple[VersionCount, ...]] = regression_versions
    clusters: Callable[..., ClusterPage] = clusters
    current_cluster_id: Callable[[Store, str, str], str] = current_id
    view_cluster: Callable[..., ClusterDetail] = view_cluster
    digest: Callable[..., Digest] = make_digest
    digest_markdown: Callable[[Digest], str] = digest_markdown
    digest_archive: Callable[[Store, str], ArchivePage] = archive
    newest_week: Callable[[Store, str], IsoWeek | None] = newest_whole_week
    feed_entries: Callable[[Store, str], tuple[FeedEntry, ...]] = feed_entries
    judge: Callable[..., tuple[Judgement, bool]] = judge
    judgements: Callable[..., tuple[Judgement, ...]] = judgements
    undo: Callable[..., Judgement] = undo
    vote: Callable[..., IssueVotes] = vote


# `async`, though nothing is waited for: FastAPI hands each plain function to a thread, and a request would
# wait for each before its work begins.


async def settings(request: Request) -> Settings:
    """The settings `create_app` was given."""
    return cast("Settings", request.app.state.settings)


@dataclass(frozen=True, slots=True)
class Desk:
    """What every endpoint works with."""

    settings: Settings
    store: Store
    knowledge: Knowledge
    count_verdict: Callable[[str], None] = lambda _verdict: None


async def desk(request: Request) -> Desk:
    """The desk that was set up when the server started."""
    return cast("Desk", request.app.state.desk)


DeskDep = Annotated[Desk, Depends(desk)]


CHALLENGE = {"WWW-Authenticate": "Bearer"}


class AdminTokenError(TriageError):
    """No admin token, or not the right one."""

    status = 401


class NoAdminError(TriageError):
    """No admin token is set, so nobody may."""

    status = 403


_bearer = HTTPBearer(auto_error=False, scheme_name="admin", description="TRIAGE_ADMIN_TOKEN")


async def require_admin(
    request: Request, told: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> None:
    """Let only the holder of the admin token pass; compared in constant time.

    Raises:
        NoAdminError: the operator has set none.
        AdminTokenError: none is sent, or another.
    """
    token = (await settings(request)).admin_token
    if token is None:
        raise NoAdminError("Nobody may change this here: the operator sets TRIAGE_ADMIN_TOKEN.")
    if told is None:
        raise AdminTokenError("Send the admin token: Authorization: Bearer TOKEN.")
    sent = told.credentials.encode("utf-8", errors="replace")
    if not hmac.compare_digest(sent, token.get_secret_value().encode()):
        raise AdminTokenError("This is not the admin token.")
