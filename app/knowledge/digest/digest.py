"""The weekly digest: new failures, fixes and advice, one line each.

A digest depends only on the week and the database, not on when it is made. Each line of advice follows from a
stated fact; if nothing is known, it only says what to watch.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby, islice
from typing import Literal

from markdown_it import MarkdownIt
from pydantic import Field
from sqlalchemy.orm import Session

from app.errors import NotFoundError, WeekError
from app.extract.facts import Facts, Frozen
from app.extract.redact import mask_secrets
from app.extract.versions import is_before, ordered
from app.knowledge.cluster.judgements import Judgement, judged_between
from app.knowledge.cluster.timeline import (
    WEEKS_BEFORE,
    GrowingCluster,
    describe_growing,
    growths,
    weeks_covered,
)
from app.knowledge.digest.week import (
    CHART_WEEKS,
    AliveNews,
    ClusterNews,
    DigestIssue,
    FixNews,
    RemedyNews,
    UnremediedNews,
    VersionNews,
    WeekIssues,
    WeekReport,
    alive_news,
    all_reports,
    data_end,
    error_text,
    fixed_in,
    load_week,
    one_line,
    regression_news,
    remedies_in,
    unremedied,
)
from app.knowledge.iso_week import IsoWeek
from app.knowledge.labels import plural
from app.knowledge.markdown import render_markdown
from app.store.derived.facts import find_estimated_dates
from app.store.derived.weeks import (
    Opened,
    OpenedDay,
    OpenedSpan,
    nearest_opened,
    opened_days,
    opened_span,
    release_dates,
)
from app.store.github.issues import find_repository
from app.store.github.releases import missing_for_fixes
from app.store.github.sync_state import fresh_as_of
from app.store.records import IssueRecord
from app.store.session import Store

AdviceKind = Literal["upgrade", "remedy", "stay", "watch"]


class WeekCount(Frozen):
    """Number of issues opened in a week, and of failures among them."""

    week: str
    issues: int
    failures: int


class ValueCount(Frozen):
    value: str
    reports: int


class DataState(Frozen):
    """How complete the stored data is for the week."""

    until: datetime | None = Field(description="end of the data: newest complete sync or issue")
    is_over: bool = Field(description="whether the data covers the whole week")
    estimated: int = Field(description="number of the week's issues with an estimated date")
    undated: int = Field(description="number of stored issues without a date, which are in no week")
    newest_release: str | None = Field(description="newest full release by the end of the week")
    newest_release_at: datetime | None = None
    are_fixes_known: bool = Field(True, description="false if no releases or no pull requests are stored")


class Advice(Frozen):
    """One line of advice."""

    kind: AdviceKind
    whom: str = Field(description="who is affected")
    action: str = Field(description="recommended action, in words")
    command: str = Field("", description="command to type; empty if there is none")
    number: int
    title: str = Field("", description="title of the issue: the failure that the advice is for")
    url: str


class Digest(Frozen):
    """The digest of one week of a repository."""

    repo: str
    week: str
    days: str = Field(description="first and last day of the week, in words")
    start: datetime
    end: datetime = Field(description="end of the week, exclusive")
    previous: str | None = Field(description="the nearest earlier week with issues")
    next: str | None = Field(description="the nearest later week with issues")
    headline: str
    advice: tuple[Advice, ...] = ()
    data: DataState
    issues: int
    failures: int
    issues_before: int = Field(description="number of issues opened in the week before")
    failures_before: int
    weeks_before: int = Field(description="number of complete weeks of data before this one, at most 8")
    weeks: tuple[WeekCount, ...] = Field(description="oldest first; the last is this week")
    kinds: tuple[ValueCount, ...] = ()
    hardware: tuple[ValueCount, ...] = Field((), description="number of reports that name each GPU or CPU")
    without_hardware: int
    reports: tuple[WeekReport, ...] = Field((), description="all failures of the week, newest first")
    decisions: tuple[Judgement, ...] = Field(
        (), description="judgements made in the week and still in force, newest first"
    )
    clusters: tuple[ClusterNews, ...] = Field((), description="failures with other reports, most new first")
    repeated_total: int = Field(description="number of the week's failures with other reports")
    failures_total: int = Field(description="number of distinct failures of the week")
    growing: tuple[GrowingCluster, ...] = ()
    regressions: tuple[VersionNews, ...] = ()
    fixed: tuple[FixNews, ...] = ()
    fixed_total: int
    remedies: tuple[RemedyNews, ...] = ()
    remedies_total: int
    unremedied: tuple[UnremediedNews, ...] = ()
    unremedied_total: int
    alive: tuple[AliveNews, ...] = ()


class ArchivePage(Frozen):
    """All weeks with issues, newest first."""

    repo: str
    weeks: tuple[WeekCount, ...]
    undated: int


CLUSTERS_LISTED = 15
FIXED_LISTED = 20
REMEDIES_LISTED = 15
UNREMEDIED_LISTED = 8
GROWING_LISTED = 10


def make_digest(store: Store, repo: str, week: IsoWeek) -> Digest:
    """Return the digest of a week, empty for a week without issues.

    Raises:
        NotFoundError: nothing of the repository is stored.
        WeekError: the week lies in the future.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if not repo_id:
            raise NotFoundError(f"Nothing of {repo} is stored yet.")
        newest = max(filter(None, (datetime.now(UTC), opened_span(session, repo_id).last)))
        if week.start > newest:
            raise WeekError(f"{week} has not begun; the newest week is {IsoWeek.of(newest)}.")
        return _digest(session, repo_id, repo, week)


def _digest(session: Session, repo_id: int, repo: str, week: IsoWeek) -> Digest:
    span, loaded = opened_span(session, repo_id), load_week(session, repo_id, repo, week)
    data, covered = _data_state(session, repo_id, span, loaded), weeks_covered(span.first, week)
    weeks = count_weeks(loaded.opened, [week.shifted(n - CHART_WEEKS + 1) for n in range(CHART_WEEKS)])
    fixed, facts_of_fixed = fixed_in(session, repo_id, repo, week.start, week.end)
    remedies = remedies_in(session, repo_id, repo, week.start, week.end)
    clusters = [one for one in loaded.failures if one.size > 1]
    regressions, without = regression_news(loaded), unremedied(loaded)
    grown = growths(loaded.opened, week) if covered == WEEKS_BEFORE else []
    growing = describe_growing(session, repo_id, grown[:GROWING_LISTED])
    earlier = nearest_opened(session, repo_id, week.start, before=True)
    later = nearest_opened(session, repo_id, week.end, before=False)
    before = weeks[-2].failures if data.is_over else None
    reports = loaded.known(loaded.reports)
    return Digest(
        repo=repo,
        week=str(week),
        days=week.days,
        start=week.start,
        end=week.end,
        previous=str(IsoWeek.of(earlier)) if earlier else None,
        next=str(IsoWeek.of(later)) if later else None,
        headline=headline(loaded, len(grown), fixed, before),
        advice=advice(loaded, fixed, facts_of_fixed, regressions, growing, without),
        data=data,
        issues=len(loaded.issues),
        failures=len(loaded.reports),
        issues_before=weeks[-2].issues,
        failures_before=weeks[-2].failures,
        weeks_before=covered,
        weeks=weeks,
        kinds=_most_reported(one.facts.failure_kind for one in reports),
        hardware=_most_reported(mask_secrets(name) for one in reports for name in set(one.facts.gpus)),
        without_hardware=len(loaded.reports) - sum(bool(one.facts.gpus) for one in reports),
        reports=all_reports(loaded),
        decisions=judged_between(session, repo_id, repo, week.start, week.end),
        clusters=tuple(clusters[:CLUSTERS_LISTED]),
        repeated_total=len(clusters),
        failures_total=len(loaded.failures),
        growing=growing,
        regressions=regressions,
        fixed=fixed[:FIXED_LISTED],
        fixed_total=len(fixed),
        remedies=remedies[:REMEDIES_LISTED],
        remedies_total=len(remedies),
        unremedied=without[:UNREMEDIED_LISTED],
        unremedied_total=len(without),
        alive=alive_news(loaded),
    )


def _data_state(session: Session, repo_id: int, span: OpenedSpan, loaded: WeekIssues) -> DataState:
    until, end = data_end(span.last, fresh_as_of(session, repo_id)) if span.last else None, loaded.week.end
    releases = release_dates(session, repo_id)
    full = [one for one in releases if not one.is_prerelease and one.published_at < end]
    return DataState(
        until=until,
        is_over=until is not None and until >= end,
        undated=span.undated,
        estimated=len(find_estimated_dates(session, repo_id, loaded.issues)),
        newest_release=full[-1].tag.removeprefix("v") if full else None,
        newest_release_at=full[-1].published_at if full else None,
        are_fixes_known=not missing_for_fixes(session, repo_id),
    )


def count_weeks(opened: Iterable[Opened], weeks: Iterable[IsoWeek]) -> tuple[WeekCount, ...]:
    """Count the issues and failures opened in each of these weeks."""
    issues: Counter[IsoWeek] = Counter()
    failures: Counter[IsoWeek] = Counter()
    for one in opened:
        week = IsoWeek.of(one.created_at)
        issues[week] += 1
        failures[week] += one.is_failure
    return tuple(WeekCount(week=str(week), issues=issues[week], failures=failures[week]) for week in weeks)


def _most_reported(values: Iterable[str]) -> tuple[ValueCount, ...]:
    ranked = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(ValueCount(value=value, reports=reports) for value, reports in ranked)


def archive(store: Store, repo: str) -> ArchivePage:
    """Return all weeks with issues, newest first; empty if nothing is stored."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        undated = opened_span(session, repo_id).undated
        days = opened_days(session, repo_id)
    weeks = groupby(reversed(days), key=lambda one: IsoWeek.of(one.day))
    return ArchivePage(repo=repo, weeks=tuple(_week_count(week, of) for week, of in weeks), undated=undated)


def _week_count(week: IsoWeek, days: Iterable[OpenedDay]) -> WeekCount:
    known = list(days)
    issues, failures = sum(day.issues for day in known), sum(day.failures for day in known)
    return WeekCount(week=str(week), issues=issues, failures=failures)


def digest_markdown(digest: Digest, *, narrow: bool = False) -> str:
    """Render the digest as Markdown, ending with a newline; `narrow`: tables of many columns become lists."""
    return render_markdown("digest.md", digest=digest, narrow=narrow)


_MAIL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title>
</head>
<body>
<font face="Helvetica, Arial, sans-serif">
{body}</font>
</body>
</html>
"""


_LONG_WORD = re.compile(r"(<[^>]*>)|([^\s<>&;]{12})(?=[^\s<>&;]{3})")


def digest_mail(digest: Digest) -> str:
    """Render the Markdown as a page for mail programs: no style sheet, no script, nothing to load.

    Long words may be broken, so that it fits a phone.
    """
    markdown = digest_markdown(digest, narrow=True)
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    body = _LONG_WORD.sub(lambda found: found[1] or f"{found[2]}<wbr>", body)
    body = body.replace(' style="text-align:right"', ' align="right"')
    body = body.replace("<table>", '<table border="1" cellpadding="4" cellspacing="0">')
    return _MAIL.format(title=escape(f"{digest.repo}, week {digest.week}"), body=body)


LINES_MAX = 5
EACH_MAX = 2
_ERROR_CHARS = 80


def advice(
    week: WeekIssues,
    fixed: Sequence[FixNews],
    facts_of_fixed: Mapping[int, Facts],
    regressions: Sequence[VersionNews],
    growing: Sequence[GrowingCluster],
    without: Sequence[UnremediedNews],
) -> tuple[Advice, ...]:
    """Return at most `LINES_MAX` lines on different issues: upgrades, remedies, versions to keep, watches."""
    lines: dict[int, Advice] = {}
    for kind in (
        _upgrades(fixed, facts_of_fixed),
        _remedies(week),
        _versions_to_keep(week, regressions),
        _watches(week, growing, lines),
        _without_remedy(week, without),
    ):
        for line in islice((line for line in kind if line.number not in lines), EACH_MAX):
            lines[line.number] = line
    return tuple(islice(lines.values(), LINES_MAX))


def _affected(facts: Facts) -> str:
    """Describe who is affected: by hardware, model and version as far as known, else by the error."""
    parts = []
    if facts.gpus:
        parts.append(f"on {' or '.join(mask_secrets(name) for name in facts.gpus[:2])}")
    if facts.models:
        parts.append(f"with {mask_secrets(facts.models[0])}")
    if (version := ordered(facts.versions.get("vllm"))) is not None:
        parts.append(f"in vLLM {version}")
    if parts:
        words = " ".join(parts)
        return words[0].upper() + words[1:]
    if facts.error:
        return f"Who meets “{one_line(error_text(facts), _ERROR_CHARS)}”"
    return "Whoever meets it"


def _upgrades(fixed: Iterable[FixNews], facts: Mapping[int, Facts]) -> Iterator[Advice]:
    for item in fixed:
        if item.how == "released" and item.fix.released_in:
            by = f": {item.fix.pr} is in it" if item.fix.pr else ""
            action = f"upgrade to {item.fix.released_in}{by}."
            yield _line("upgrade", item, facts[item.number], action)


def _line(
    kind: AdviceKind, item: DigestIssue | IssueRecord, facts: Facts, action: str, command: str = ""
) -> Advice:
    return Advice(
        kind=kind,
        whom=_affected(facts),
        action=action,
        command=command,
        number=item.number,
        title=mask_secrets(item.title),
        url=item.url,
    )


def _remedies(week: WeekIssues) -> Iterator[Advice]:
    """Yield remedies with a command, for the failures with the most reports, then the most hits."""
    for failure in sorted(week.failures, key=lambda one: (-one.reports, -week.hits(one.numbers))):
        if remedy := next((remedy for remedy in failure.workarounds if remedy.command), None):
            known = week.candidates[remedy.number]
            action = "this is reported to work:"
            yield _line("remedy", known.issue, known.facts, action, remedy.command or "")


def _versions_to_keep(week: WeekIssues, regressions: Iterable[VersionNews]) -> Iterator[Advice]:
    """Yield regressions with a known last working version; those first bad in a full release come first."""
    lines = [item for version in regressions for item in version.items]
    lines.sort(key=lambda item: (v := ordered(item.regression.first_failing)) is None or v.is_prerelease)
    for item in lines:
        works, fails = item.regression.last_working, item.regression.first_failing
        if ordered(works) is not None and (not fails or is_before(works, fails)):
            later = f"{_plain(fails)} fails" if fails else "a later one fails"
            action = f"{_plain(works)} is reported to work, {later}."
            yield _line("stay", item, week.candidates[item.number].facts, action)


def _plain(text: str | None) -> str:
    """Return a version in normalized form; masked as it is if it cannot be parsed."""
    known = ordered(text)
    return str(known) if known is not None else mask_secrets(text or "")


def _watches(
    week: WeekIssues, growing: Iterable[GrowingCluster], lines: Mapping[int, Advice]
) -> Iterator[Advice]:
    """Yield growing failures without a line so far, represented by their newest report."""
    for item in growing:
        found = week.candidates.get(max(item.numbers, default=item.canonical))
        if found is not None and lines.keys().isdisjoint((item.canonical, *item.numbers)):
            action = f"watch this: {item.reports} reports this week, {item.before} in the eight weeks before."
            yield _line("watch", found.issue, found.facts, action)


def _without_remedy(week: WeekIssues, without: Sequence[UnremediedNews]) -> Iterator[Advice]:
    action = "no workaround is known; of such failures this one is reported and discussed most."
    for item in without[:1]:
        yield _line("watch", item, week.candidates[item.number].facts, action)


def headline(week: WeekIssues, growing: int, fixed: Sequence[FixNews], before: int | None) -> str:
    """Summarize the week in a sentence; `before`: failures of the week before, None if this is not over."""
    if not week.issues:
        return "No issue was opened this week."
    reports = len(week.reports)
    words = f"{plural(reports, 'new failure')} among {plural(len(week.issues), 'new issue')}"
    if before and reports != before:
        words += f", {abs(reports - before)} {'more' if reports > before else 'fewer'} than the week before"
    rest = []
    if week.failures and (most := week.failures[0]).reports > 1:
        text = one_line(most.text or f"#{most.canonical} {most.title}", _ERROR_CHARS)
        rest.append(f"the most reported, with {most.reports} reports, is “{text}”")
    if growing:
        rest.append(f"{plural(growing, 'failure')} {'grows' if growing == 1 else 'grow'}")
    if released := sum(item.how == "released" for item in fixed):
        rest.append(f"{plural(released, 'fix', 'fixes')} came out")
    return f"{words}{'; ' if rest else ''}{', '.join(rest)}."
