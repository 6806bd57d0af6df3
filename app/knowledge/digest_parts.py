"""The lists of a digest that follow from the week's own reports.

In: a `WeekIssues`. Out: failures by cluster, regressions by version, what has no remedy, what is closed but
alive. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.extract.redact import mask_secrets
from app.knowledge.cluster_times import closed_but_alive
from app.knowledge.digest_shapes import AliveNews, ClusterNews, RegressionNews, UnremediedNews, VersionNews
from app.knowledge.digest_week import Group, WeekIssues, shown_issue
from app.knowledge.version_order import ordered, plain_version

CLUSTERS_SHOWN = 15


def cluster_news(week: WeekIssues) -> tuple[ClusterNews, ...]:
    """The failures of the week that have other reports, the most reported first."""
    return tuple(_cluster(week, group) for group in week.groups if group.record and group.size > 1)


def _cluster(week: WeekIssues, group: Group) -> ClusterNews:
    return ClusterNews(
        id=group.record.id if group.record else "", text=_text(group), canonical=group.canonical,
        title=_title(week, group), reports=len(group.numbers), numbers=group.numbers, size=group.size,
        is_new=len(group.numbers) == group.size, remedy=group.remedy, fix=group.fix,
    )  # fmt: skip


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
                **shown_issue(week.repo, most.issue, most.facts), numbers=group.numbers,
                cluster=group.record.id if group.record else None, hits=week.hits(known),
            )
        )  # fmt: skip
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
                id=group.record.id, text=_text(group), canonical=group.canonical, title=_title(week, group),
                alive=told, numbers=group.numbers,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda one: (-one.alive.reports_since, one.canonical)))
