"""What a reader should do this week, one line each, and the week in one sentence.

Every line follows from a stated fact; where nothing is known, it says only what to watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from app.extract.facts import Facts
from app.extract.redaction.redact import mask_secrets
from app.extract.rules.patterns import pattern
from app.extract.versions import is_before, ordered
from app.knowledge.cluster.timeline import GrowingCluster
from app.knowledge.digest.shapes import (
    Advice,
    AdviceKind,
    ClusterNews,
    DigestIssue,
    FixNews,
    UnremediedNews,
    VersionNews,
)
from app.knowledge.digest.week import WeekIssues, error_text, one_line
from app.knowledge.labels import plural
from app.knowledge.remedies import Remedy
from app.store.records import IssueRecord

LINES_MAX = 5
EACH_MAX = 2
COMMAND_CHARS = 120
_ERROR_CHARS = 80
_SETTING = pattern(r"^(?:--[a-z][a-z0-9-]+|[A-Z][A-Z0-9]+_[A-Z0-9_]+=\S)")
"""What begins with a flag or an environment variable as it is written."""


def advice(
    week: WeekIssues,
    fixed: Sequence[FixNews],
    facts_of_fixed: Mapping[int, Facts],
    regressions: Sequence[VersionNews],
    growing: Sequence[GrowingCluster],
    without: Sequence[UnremediedNews],
) -> tuple[Advice, ...]:
    """At most five lines, each of another issue: what to install, to set, to stay on, to watch."""
    lines: dict[int, Advice] = {}
    for kind in (
        _upgrades(fixed, facts_of_fixed),
        _remedies(week),
        _stays(week, regressions),
        _watches(week, growing, lines),
        _unhelped(week, without),
    ):
        for line in islice((line for line in kind if line.number not in lines), EACH_MAX):
            lines[line.number] = line
    return tuple(islice(lines.values(), LINES_MAX))


def _whom(facts: Facts) -> str:
    """Whom a failure concerns: its hardware, model and version, as far as they are known; else its error."""
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
    kind: AdviceKind, item: DigestIssue | Remedy | IssueRecord, facts: Facts, action: str, command: str = ""
) -> Advice:
    whom, number, url = _whom(facts), item.number, item.url
    return Advice(kind=kind, whom=whom, action=action, command=command, number=number, url=url)


def _remedies(week: WeekIssues) -> Iterator[Advice]:
    """What works and can be written as it stands, for the failures most reported, then most hit."""
    found = []
    for failure in week.failures:
        for remedy in failure.remedies:
            is_setting = len(remedy.action) <= COMMAND_CHARS and _SETTING.search(remedy.action)
            if remedy.outcome == "works" and is_setting:
                found.append((-len(failure.numbers), -week.hits(failure.numbers), remedy.number, remedy))
                break
    for *_, remedy in sorted(found, key=lambda item: item[:3]):
        facts = week.candidates[remedy.number].facts
        yield _line("remedy", remedy, facts, "this is reported to work:", remedy.action)


def _stays(week: WeekIssues, regressions: Iterable[VersionNews]) -> Iterator[Advice]:
    """Regressions whose last working version is known; those of releases first, the newest first."""
    lines = [item for version in regressions for item in version.items]
    lines.sort(key=lambda item: _is_build(item.regression.first_failing))
    for item in lines:
        works, fails = item.regression.last_working, item.regression.first_failing
        if ordered(works) is not None and (not fails or is_before(works, fails)):
            later = f"{_plain(fails)} fails" if fails else "a later one fails"
            action = f"{_plain(works)} is reported to work, {later}."
            yield _line("stay", item, week.candidates[item.number].facts, action)


def _plain(text: str | None) -> str:
    """A version without a leading v and without its build's part."""
    known = ordered(text)
    return str(known) if known is not None else mask_secrets(text or "")


def _is_build(text: str | None) -> bool:
    version = ordered(text)
    return version is None or version.is_prerelease


def _watches(
    week: WeekIssues, growing: Iterable[GrowingCluster], lines: Mapping[int, Advice]
) -> Iterator[Advice]:
    """Failures that grow and that have no line yet, by their newest report."""
    for item in growing:
        found = week.candidates.get(max(item.numbers, default=item.canonical))
        if found is not None and lines.keys().isdisjoint((item.canonical, *item.numbers)):
            action = f"watch this: {item.reports} reports this week, {item.before} in the eight weeks before."
            yield _line("watch", found.issue, found.facts, action)


def _unhelped(week: WeekIssues, without: Sequence[UnremediedNews]) -> Iterator[Advice]:
    action = "no remedy is known yet; of the failures without one this is the most hit."
    for item in without[:1]:
        yield _line("watch", item, week.candidates[item.number].facts, action)


def headline(
    week: WeekIssues,
    clusters: Sequence[ClusterNews],
    growing: int,
    fixed: Sequence[FixNews],
    before: int | None,
) -> str:
    """The week in one sentence; `before`: reports of the week before, None for a week that is not over."""
    if not week.issues:
        return "No issue was opened this week."
    reports = len(week.reports)
    words = f"{plural(reports, 'new failure')} among {plural(len(week.issues), 'new issue')}"
    if before and reports != before:
        words += f", {abs(reports - before)} {'more' if reports > before else 'fewer'} than the week before"
    rest = []
    if clusters and clusters[0].reports > 1:
        text = one_line(clusters[0].text, _ERROR_CHARS)
        rest.append(f"most reports, {clusters[0].reports}, are of “{text}”")
    if growing:
        rest.append(f"{plural(growing, 'failure')} {'grows' if growing == 1 else 'grow'}")
    if released := sum(item.how == "released" for item in fixed):
        rest.append(f"{plural(released, 'fix', 'fixes')} came out")
    return f"{words}{'; ' if rest else ''}{', '.join(rest)}."
