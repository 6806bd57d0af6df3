"""A week's issues, loaded once for all parts of its digest.

In: an open session, a repository, a week. Out: a `WeekIssues`: what was opened, the week's reports, and the
failures they tell of, each with all reports of its cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.redaction.redact import mask_secrets
from app.knowledge.cluster.advice import cluster_fix
from app.knowledge.cluster.growth import WEEKS_BEFORE
from app.knowledge.fix.shapes import FixView
from app.knowledge.iso_week import IsoWeek
from app.knowledge.remedies import Remedy, rank_remedies, remedies_of
from app.knowledge.version.issues import Candidate, load_candidates
from app.store.derived.clusters import ClusterRecord, cluster_of, find_clusters, members_of
from app.store.derived.weeks import Opened, opened_between
from app.store.records import IssueRecord

CHART_WEEKS = 13
"""A quarter: as many weeks as there is room to write the number over each column."""
ERROR_CHARS = 160
ACTION_CHARS = 300
MENDED = frozenset({"fixed", "merged_unreleased"})


@dataclass(frozen=True, slots=True)
class Group:
    """A failure of the week.

    Attributes:
        record: its cluster; None before it has one.
        numbers: the week's reports of it.
        size: its reports of all time.
        canonical: the issue that shows it best.
        fix, remedies: what all its reports tell of them, the surest first.
    """

    record: ClusterRecord | None
    numbers: tuple[int, ...]
    size: int
    canonical: int
    fix: FixView | None
    remedies: tuple[Remedy, ...]

    @property
    def remedy(self) -> Remedy | None:
        """The one to try first, if any is said to help."""
        return next((item for item in self.remedies if item.outcome != "fails"), None)

    @property
    def is_mended(self) -> bool:
        """Whether its fix is merged."""
        return self.fix is not None and self.fix.state in MENDED


@dataclass(frozen=True, slots=True)
class WeekIssues:
    """What was opened in a week.

    Attributes:
        opened: the issues of `CHART_WEEKS` weeks up to this one.
        issues, reports: numbers of the week's issues, and of those that report a failure.
        candidates: the week's reports and the other reports of their failures.
        clusters: cluster ids of the reports of this week and the eight before.
        groups: the failures of the week, the most reported first.
    """

    repo: str
    week: IsoWeek
    opened: tuple[Opened, ...]
    issues: tuple[int, ...]
    reports: tuple[int, ...]
    candidates: Mapping[int, Candidate]
    clusters: Mapping[int, str]
    groups: tuple[Group, ...]

    def of_week(self) -> list[Opened]:
        """The week's reports."""
        return [one for one in self.opened if one.is_failure and one.created_at >= self.week.start]

    def before(self) -> list[Opened]:
        """The reports of the eight weeks before."""
        begin, start = self.week.shifted(-WEEKS_BEFORE).start, self.week.start
        return [one for one in self.opened if one.is_failure and begin <= one.created_at < start]

    def hits(self, numbers: Sequence[int]) -> int:
        """These reports, their comments and their reactions."""
        known = [self.candidates[number].issue for number in numbers if number in self.candidates]
        return sum(1 + issue.comments + issue.reactions for issue in known)

    def facts(self, number: int) -> Facts | None:
        """What is known of a report of the week, or of another one of its failure."""
        found = self.candidates.get(number)
        return found.facts if found else None


def load_week(session: Session, repo_id: int, repo: str, week: IsoWeek) -> WeekIssues:
    """All that the digest's parts ask of a week."""
    opened = tuple(opened_between(session, repo_id, week.shifted(1 - CHART_WEEKS).start, week.end))
    begin, start = week.shifted(-WEEKS_BEFORE).start, week.start
    recent = [one.number for one in opened if one.is_failure and one.created_at >= begin]
    reports = tuple(one.number for one in opened if one.is_failure and one.created_at >= start)
    clusters = cluster_of(session, repo_id, recent)
    ids = sorted({clusters[number] for number in reports if number in clusters})
    records, members = find_clusters(session, repo_id, ids), members_of(session, repo_id, ids)
    wanted = {*reports, *(number for numbers in members.values() for number in numbers)}
    found = {one.issue.number: one for one in load_candidates(session, repo_id, repo, wanted)}
    told: dict[str, list[int]] = {}
    for number in reports:
        told.setdefault(clusters.get(number, f"#{number}"), []).append(number)
    groups = [
        _group(repo, records.get(key), numbers, members.get(key, tuple(numbers)), found)
        for key, numbers in told.items()
    ]
    groups.sort(key=lambda group: (-len(group.numbers), -group.size, group.numbers))
    return WeekIssues(
        repo=repo,
        week=week,
        opened=opened,
        reports=reports,
        candidates=found,
        clusters=clusters,
        issues=tuple(one.number for one in opened if one.created_at >= start),
        groups=tuple(groups),
    )


def _group(
    repo: str,
    record: ClusterRecord | None,
    numbers: Sequence[int],
    members: Sequence[int],
    found: Mapping[int, Candidate],
) -> Group:
    known = [found[number] for number in members if number in found]
    canonical = record.canonical if record else numbers[0]
    remedies = [
        remedy
        for one in known
        if one.facts.workarounds
        for remedy in remedies_of(one.facts, repo=repo, url=one.issue.url)
    ]
    return Group(
        record=record,
        numbers=tuple(numbers),
        size=len(known) or len(numbers),
        canonical=canonical,
        fix=cluster_fix(canonical, known),
        remedies=tuple(shown_remedy(remedy) for remedy in rank_remedies(remedies)),
    )


def shown_remedy(remedy: Remedy) -> Remedy:
    """A remedy with its words masked, on one line and cut to what a list shows."""
    action = " ".join(mask_secrets(remedy.action).split())
    if len(action) > ACTION_CHARS:
        action = f"{action[:ACTION_CHARS]}…"
    return remedy.model_copy(update={"action": action})


def shown_issue(repo: str, head: IssueRecord, facts: Facts | None) -> dict[str, Any]:
    """The fields of a `DigestIssue`, masked."""
    error = facts.error if facts else None
    told = ": ".join(part for part in (error.type, error.message) if part) if error else ""
    return {
        "repo": repo,
        "number": head.number,
        "title": mask_secrets(head.title),
        "url": head.url,
        "state": head.state,
        "created_at": head.created_at,
        "kind": facts.failure_kind if facts else "none",
        "error": " ".join(mask_secrets(told).split())[:ERROR_CHARS],
        "comments": head.comments,
        "reactions": head.reactions,
    }
