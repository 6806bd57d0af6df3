"""What a reader should do this week, one line each, and the week in one sentence.

Every line follows from a fact: a release that holds a fix, a remedy that is said to work, a version that is
said to work. Where nothing is known, the line says only what to watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from app.extract.facts import ErrorFact, Facts
from app.extract.redaction.redact import mask_secrets
from app.extract.rules.patterns import pattern
from app.extract.versions import is_before, ordered
from app.knowledge.cluster.growth import GrowingCluster
from app.knowledge.digest.shapes import Advice, ClusterNews, FixNews, UnremediedNews, VersionNews
from app.knowledge.digest.week import Group, WeekIssues
from app.knowledge.remedies import Remedy

LINES_MAX = 5
EACH_MAX = 2
COMMAND_CHARS = 120
_ERROR_CHARS = 80
_SETTING = pattern(r"^(?:--[a-z][a-z0-9-]+|[A-Z][A-Z0-9]+_[A-Z0-9_]+=\S)")
"""What begins with a flag or an environment variable as it is written."""


def advice(
    week: WeekIssues,
    *,
    fixed: Sequence[FixNews],
    regressions: Sequence[VersionNews],
    growing: Sequence[GrowingCluster],
    without: Sequence[UnremediedNews],
    facts_of_fixed: Mapping[int, Facts],
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
        fresh = (line for line in kind if line.number not in lines)
        for line in islice(fresh, EACH_MAX):
            lines[line.number] = line
    return tuple(islice(lines.values(), LINES_MAX))


def whom(
    gpus: Sequence[str], models: Sequence[str], version: str | None, error: ErrorFact | None = None
) -> str:
    """Whom a failure concerns: its hardware, model and version, as far as they are told; else its error."""
    parts = []
    if gpus:
        parts.append(f"On {' or '.join(mask_secrets(name) for name in gpus[:2])}")
    if models:
        parts.append(f"{'with' if parts else 'With'} {mask_secrets(models[0])}")
    if (known := ordered(version)) is not None:
        parts.append(f"{'in' if parts else 'In'} vLLM {known}")
    if parts:
        return " ".join(parts)
    if error:
        return f"Who meets “{_short(': '.join(part for part in (error.type, error.message) if part))}”"
    return "Whoever meets it"


def _whom(facts: Facts | None) -> str:
    if facts is None:
        return whom((), (), None)
    return whom(facts.gpus, facts.models, facts.versions.get("vllm"), facts.error)


def _upgrades(fixed: Iterable[FixNews], facts: Mapping[int, Facts]) -> Iterator[Advice]:
    for item in fixed:
        if item.how != "released" or not item.fix.released_in:
            continue
        by = f": {item.fix.pr} is in it" if item.fix.pr else ""
        yield Advice(
            kind="upgrade",
            whom=_whom(facts.get(item.number)),
            number=item.number,
            url=item.url,
            action=f"upgrade to {item.fix.released_in}{by}.",
        )


def _remedies(week: WeekIssues) -> Iterator[Advice]:
    """What works and can be written as it stands, for the failures most reported, then most hit."""
    found = [
        (-len(group.numbers), -week.hits(group.numbers), remedy.number, remedy)
        for group in week.groups
        if (remedy := _runnable(group)) is not None
    ]
    for *_, remedy in sorted(found, key=lambda item: item[:3]):
        told = remedy.conditions
        facts, version = week.facts(remedy.number), next(iter(told.versions), None)
        concerned = _whom(facts) if facts else whom(told.gpus, told.models, version)
        yield Advice(
            kind="remedy",
            whom=concerned,
            action="this is said to work:",
            command=remedy.action,
            number=remedy.number,
            url=remedy.url,
        )


def _runnable(group: Group) -> Remedy | None:
    """The first flag or variable that is said to work."""
    return next(
        (
            item
            for item in group.remedies
            if item.outcome == "works" and len(item.action) <= COMMAND_CHARS and _SETTING.search(item.action)
        ),
        None,
    )


def _stays(week: WeekIssues, regressions: Iterable[VersionNews]) -> Iterator[Advice]:
    """Regressions whose last working version is told; those of releases first, the newest first."""
    lines = [item for version in regressions for item in version.items]
    lines.sort(key=lambda item: _is_build(item.regression.first_failing))
    for item in lines:
        told = item.regression
        if ordered(told.last_working) is None:
            continue
        if told.first_failing and not is_before(told.last_working, told.first_failing):
            continue
        fails = f"{version_words(told.first_failing)} fails" if told.first_failing else "a later one fails"
        yield Advice(
            kind="stay",
            whom=_whom(week.facts(item.number)),
            number=item.number,
            url=item.url,
            action=f"{version_words(told.last_working)} is said to work, {fails}.",
        )


def version_words(text: str | None) -> str:
    """A version as it is said: without a leading v and without its build's part."""
    known = ordered(text)
    return str(known) if known is not None else mask_secrets(text or "")


def _is_build(text: str | None) -> bool:
    version = ordered(text)
    return version is None or version.is_prerelease


def _watches(
    week: WeekIssues, growing: Iterable[GrowingCluster], told: Mapping[int, Advice]
) -> Iterator[Advice]:
    """Failures that grow and that no line tells of yet, by their newest report."""
    for item in growing:
        found = week.candidates.get(max(item.numbers, default=item.canonical))
        if found is None or not told.keys().isdisjoint((item.canonical, *item.numbers)):
            continue
        yield Advice(
            kind="watch",
            whom=_whom(found.facts),
            number=found.issue.number,
            url=found.issue.url,
            action=f"watch this: {item.reports} reports this week, {item.before} in the eight weeks before.",
        )


def _unhelped(week: WeekIssues, without: Sequence[UnremediedNews]) -> Iterator[Advice]:
    for item in without[:1]:
        yield Advice(
            kind="watch",
            whom=_whom(week.facts(item.number)),
            number=item.number,
            url=item.url,
            action="no remedy is known yet; of the failures without one this is the most hit.",
        )


def headline(
    week: WeekIssues,
    *,
    clusters: Sequence[ClusterNews],
    growing: int,
    fixed: Sequence[FixNews],
    before: int | None,
) -> str:
    """The week in one sentence; `before`: reports of the week before, None for a week that is not over."""
    reports = len(week.reports)
    if not week.issues:
        return "No issue was opened this week."
    difference = reports - (before or 0)
    change = f", {abs(difference)} {'more' if difference > 0 else 'fewer'} than the week before"
    told = f"{_counted(reports, 'new failure')} among {_counted(len(week.issues), 'new issue')}"
    told += change if difference and before else ""
    rest = []
    if clusters and clusters[0].reports > 1:
        rest.append(f"most reports, {clusters[0].reports}, are of “{_short(clusters[0].text)}”")
    if growing:
        rest.append(f"{_counted(growing, 'failure')} {'grows' if growing == 1 else 'grow'}")
    released = sum(item.how == "released" for item in fixed)
    if released:
        rest.append(f"{_counted(released, 'fix', 'fixes')} came out")
    return f"{told}{'; ' if rest else ''}{', '.join(rest)}."


def _short(text: str) -> str:
    words = " ".join(text.split())
    words = mask_secrets(words)
    return words if len(words) <= _ERROR_CHARS else f"{words[:_ERROR_CHARS].rstrip()}…"


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
