"""What an endpoint needs, handed to it: the settings, the open archive, and the room behind the desk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from app.config import Settings
from app.knowledge.answers import Diagnosis, IssueAnswer
from app.knowledge.browse import browse
from app.knowledge.browse_shapes import IssuePage
from app.knowledge.cluster_shapes import ClusterDetail, ClusterPage
from app.knowledge.cluster_view import clusters, current_id, view_cluster
from app.knowledge.diagnosis import diagnose
from app.knowledge.digest import archive, make_digest
from app.knowledge.digest_feed import FeedEntry, feed_entries
from app.knowledge.digest_markdown import digest_markdown
from app.knowledge.digest_shapes import ArchivePage, Digest
from app.knowledge.excerpt import ExcerptLine, excerpt
from app.knowledge.growth import newest_whole_week
from app.knowledge.home import Home, home
from app.knowledge.iso_week import IsoWeek
from app.knowledge.issue_markdown import issue_markdown
from app.knowledge.issue_sight import IssueSight, see_issue
from app.knowledge.issue_view import view_issue
from app.knowledge.judgements import Judgement, judge, judgements, undo
from app.knowledge.kept_logs import Kept, KeptLog, forget_log, keep_log, view_kept_log
from app.knowledge.known_issues import known_issues
from app.knowledge.markdown import diagnosis_markdown
from app.knowledge.overview import Overview, overview
from app.knowledge.regressions import regression_versions, regressions
from app.knowledge.related import RelatedItem, likeness_of, related
from app.knowledge.report import make_report
from app.knowledge.report_markdown import report_markdown
from app.knowledge.report_shapes import Report
from app.knowledge.version_shapes import KnownPage, RegressionPage, VersionCount
from app.knowledge.votes import IssueVotes, vote
from app.store.session import Store


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
