"""What changed in a week: failures whose fix came out or was merged, and remedies that were told.

In: an open session and the span. Out: the lists of the digest and of the feed. A fix counts only as
`fix_truth` decides it: by a release of the span that is known to hold it, or by a merge in the span.

The lists of a digest that follow from the week's own reports.

In: a `WeekIssues`. Out: failures by cluster, regressions by version, what has no remedy, what is closed but
alive. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.redaction.redact import mask_secrets
from app.extract.versions import ordered, plain_version
from app.knowledge.cluster.timeline import closed_but_alive
from app.knowledge.digest.shapes import (
    AliveNews,
    ClusterNews,
    Fixing,
    FixNews,
    Place,
    RegressionNews,
    RemedyNews,
    UnremediedNews,
    VersionNews,
)
from app.knowledge.digest.week import MENDED, Group, WeekIssues, shown_issue, shown_remedy
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.knowledge.remedies import OUTCOME_RANK, remedies_of
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.weeks import (
    DatedRelease,
    ToldRemedy,
    maybe_fixed_between,
    merges_of,
    release_dates,
    remedies_told_between,
)
from app.store.github.issues import find_heads


@dataclass(frozen=True, slots=True)
class Span:
    """From `start` up to `end`, which is not in it."""

    start: datetime
    end: datetime

    def holds(self, moment: datetime | None) -> bool:
        """Whether a moment lies in it."""
        return moment is not None and self.start <= moment < self.end


def fixed_in(
    session: Session, repo_id: int, repo: str, span: Span
) -> tuple[tuple[FixNews, ...], dict[int, Facts]]:
    """The failures whose fix was released or merged in the span, and their facts.

    Released ones come first, then the most hit.
    """
    numbers = maybe_fixed_between(session, repo_id, repo, span.start, span.end)
    heads = [
        head
        for head in find_heads(session, repo_id, numbers)
        if not head.is_pull_request and head.gone_at is None
    ]
    facts = find_facts_without_evidence(session, repo_id, [head.number for head in heads])
    heads = [head for head in heads if head.number in facts and facts[head.number].is_failure]
    fixes = fix_states(session, repo_id, repo, heads, facts)
    merges = merges_of(session, repo_id, sorted({pull for fix in fixes.values() if (pull := _pull(fix))}))
    releases = release_dates(session, repo_id)
    found = []
    for head in heads:
        fix = fixes[head.number]
        if fix.state not in MENDED:
            continue
        merged_at, released_at = merges.get(_pull(fix) or 0), _released_at(fix, releases)
        how = _how(span, merged_at, released_at)
        if how is not None:
            known = {"how": how, "merged_at": merged_at, "released_at": released_at, "fix": _masked(fix)}
            found.append(FixNews(**shown_issue(repo, head, facts[head.number]), **known))
    found.sort(key=lambda one: (one.how == "merged", -one.comments - one.reactions, one.number))
    return tuple(found), facts


def _masked(fix: FixView) -> FixView:
    return fix.model_copy(update={"reason": mask_secrets(fix.reason)})


def _pull(fix: FixView) -> int | None:
    digits = (fix.pr or "").removeprefix("#")
    return int(digits) if digits.isdigit() else None


def _released_at(fix: FixView, releases: Sequence[DatedRelease]) -> datetime | None:
    """When the first release that holds the fix came out."""
    wanted = ordered(fix.released_in)
    if wanted is None:
        return None
    return next((item.published_at for item in releases if ordered(item.tag) == wanted), None)


def _how(span: Span, merged_at: datetime | None, released_at: datetime | None) -> Fixing | None:
    if span.holds(released_at):
        return "released"
    return "merged" if span.holds(merged_at) else None


def remedies_in(
    session: Session, repo_id: int, repo: str, opened: Sequence[int], span: Span
) -> tuple[RemedyNews, ...]:
    """The remedies told in the span that help, or help in part: the surest first.

    Args:
        opened: the issues opened in the span; those of older issues stand in comments of the span.
    """
    told = remedies_told_between(session, repo_id, opened, span.start, span.end)
    by_issue: dict[int, dict[str, ToldRemedy]] = {}
    for item in told:
        by_issue.setdefault(item.number, {})[item.source] = item
    found = _told_remedies(session, repo_id, repo, by_issue)
    return tuple(
        sorted(
            found,
            key=lambda one: (
                OUTCOME_RANK[one.remedy.outcome],
                one.remedy.refuted_by - one.remedy.confirmed_by,
                one.remedy.number,
                one.told_at,
                one.remedy.action,
            ),
        )
    )


def _told_remedies(
    session: Session, repo_id: int, repo: str, by_issue: Mapping[int, Mapping[str, ToldRemedy]]
) -> list[RemedyNews]:
    heads = {
        head.number: head
        for head in find_heads(session, repo_id, sorted(by_issue))
        if not head.is_pull_request and head.gone_at is None
    }
    facts = find_facts_without_evidence(session, repo_id, list(heads))
    found = []
    for number, known in facts.items():
        for source, item in by_issue[number].items() if known.is_failure else ():
            own = tuple(one for one in known.workarounds if one.source == source and one.outcome != "fails")
            told = remedies_of(
                known.model_copy(update={"workarounds": own}), repo=repo, url=heads[number].url
            )
            where: Place = "comment" if source.startswith("comment:") else "issue"
            title = mask_secrets(heads[number].title)
            found += [
                RemedyNews(remedy=shown_remedy(one), title=title, told_at=item.told_at, told_in=where)
                for one in told
            ]
    return found


CLUSTERS_SHOWN = 15


def cluster_news(week: WeekIssues) -> tuple[ClusterNews, ...]:
    """The failures of the week that have other reports, the most reported first."""
    return tuple(_cluster(week, group) for group in week.groups if group.record and group.size > 1)


def _cluster(week: WeekIssues, group: Group) -> ClusterNews:
    return ClusterNews(
        id=group.record.id if group.record else "",
        text=_text(group),
        canonical=group.canonical,
        title=_title(week, group),
        reports=len(group.numbers),
        numbers=group.numbers,
        size=group.size,
        is_new=len(group.numbers) == group.size,
        remedy=group.remedy,
        fix=group.fix,
    )


def _text(group: Group) -> str:
    return mask_secrets(group.record.text) if group.record else ""


def _title(week: WeekIssues, group: Group) -> str:
    found = week.candidates.get(group.canonical)
    return mask_secrets(found.issue.title) if found else ""


def regression_news(week: WeekIssues) -> tuple[VersionNews, ...]:
    """The week's reports that tell since when they fail, by the version in which it began, newest first."""
    found: dict[str | None, list[RegressionNews]] = {}
    for number in week.reports:
        one = week.candidates.get(number)
        told = one.facts.regression if one else None
        if one is None or told is None or not (told.first_failing or told.last_working or told.culprit):
            continue
        began = plain_version(told.first_failing) if told.first_failing else None
        line = shown_issue(week.repo, one.issue, one.facts)
        found.setdefault(began, []).append(RegressionNews(**line, regression=told))
    return tuple(VersionNews(version=key, items=tuple(found[key])) for key in _newest_first(found))


def _newest_first(versions: Iterable[str | None]) -> list[str | None]:
    """Versions with a place in the order, then other words for one, then none."""
    told = list(versions)
    known = [(version, text) for text in told if text and (version := ordered(text)) is not None]
    placed: list[str | None] = [text for _, text in sorted(known, reverse=True)]
    apart = sorted(text for text in told if text is not None and text not in placed)
    return [*placed, *apart, *([None] if None in told else [])]


def unremedied(week: WeekIssues) -> tuple[UnremediedNews, ...]:
    """The failures of the week for which nothing is said to help, the most hit first."""
    found = []
    for group in week.groups:
        known = [number for number in group.numbers if number in week.candidates]
        if not known or group.remedy or group.is_mended:
            continue
        most = week.candidates[max(known, key=lambda number: (week.hits([number]), -number))]
        found.append(
            UnremediedNews(
                **shown_issue(week.repo, most.issue, most.facts),
                numbers=group.numbers,
                cluster=group.record.id if group.record else None,
                hits=week.hits(known),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.hits, one.number)))


def alive_news(week: WeekIssues) -> tuple[AliveNews, ...]:
    """Failures whose issue is closed, and that were reported again in the week."""
    found = []
    for group in week.groups:
        reports = [week.candidates[number] for number in group.numbers if number in week.candidates]
        told = closed_but_alive(week.candidates.get(group.canonical), reports, group.fix)
        if group.record is None or told is None:
            continue
        found.append(
            AliveNews(
                id=group.record.id,
                text=_text(group),
                canonical=group.canonical,
                title=_title(week, group),
                alive=told,
                numbers=group.numbers,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.alive.reports_since, one.canonical)))
