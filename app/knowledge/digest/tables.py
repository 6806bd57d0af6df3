"""A digest as Markdown with headings and tables: for chats and wikis. Foreign text is never markup.

A digest as tables: what the mail and the Markdown show, so that both show the same numbers.

How a digest says things in words: the same on the page, in the mail and in Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.extract.facts import Conditions
from app.knowledge.cluster.growth import Q_MAX, REPORTS_MIN, WEEKS_BEFORE
from app.knowledge.diagnosis.markdown import fix_words
from app.knowledge.digest.shapes import Advice, AreaCount, Digest, DigestIssue
from app.knowledge.labels import BACKENDS, FAILURES, OUTCOMES, SPEAKERS
from app.knowledge.text.quoting import NOTICE, code, escape


def digest_markdown(digest: Digest) -> str:
    """The digest as Markdown; ends with a line end."""
    lines = [*_head(digest), *_advice(digest.advice)]
    for part in digest_parts(digest):
        lines += _part(part)
    return "\n".join([*lines, *_foot(digest)]) + "\n"


def _head(digest: Digest) -> Iterator[str]:
    yield from (f"# {escape(digest.repo)}, week {digest.week}", "")
    yield from (f"{digest.days}, in UTC. {escape(digest.headline)}", "")
    for note in notes(digest):
        yield from (escape(note), "")


def _advice(lines: Sequence[Advice]) -> Iterator[str]:
    yield from ("## Do this week", "")
    if not lines:
        yield "Nothing that the stored issues tell."
    for place, line in enumerate(lines, 1):
        command = f" {code(line.command)}" if line.command else ""
        told = f"{escape(line.action)}{command} {_link(line.number, line.url)}"
        yield f"{place}. **{escape(line.whom)}:** {told}"
    yield ""


def _part(part: Part) -> Iterator[str]:
    yield from (f"## {part.name}", "")
    if part.words:
        yield from (escape(part.words), "")
    if part.rows:
        yield f"| {' | '.join(part.heads)} |"
        figures = [cell.is_figure for cell in part.rows[0]]
        yield f"|{'|'.join('---:' if is_figure else '---' for is_figure in figures)}|"
        yield from (f"| {' | '.join(_cell(cell) for cell in row)} |" for row in part.rows)
        yield ""


def _cell(cell: Cell) -> str:
    # A bare bar would end the cell, even in code.
    text = code(cell.text).replace("|", "\\|") if cell.is_code else escape(cell.text)
    return f"{_link(cell.number, cell.url)} {text}".rstrip() if cell.number else text


def _link(number: int, url: str) -> str:
    return f"[#{number}]({url})" if url.startswith("https://") and ")" not in url else f"#{number}"


def _foot(digest: Digest) -> Iterator[str]:
    until = digest.data.until
    as_of = f"{until:%Y-%m-%d %H:%M} UTC" if until else "never"
    yield f"From the issues stored of {escape(digest.repo)}, as of {as_of}. {NOTICE}"


NUMBERS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: what stands in it, of whatever origin.
        is_code: machine text; is_figure: a number, to be set to the right.
        number, url: the issue that it begins with, as a link.
    """

    text: str
    is_code: bool = False
    is_figure: bool = False
    number: int | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a digest: its name, what is said of it, and its table, which may have no rows."""

    name: str
    words: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def digest_parts(digest: Digest) -> tuple[Part, ...]:
    """All parts but the head and the advice, in the order of the page."""
    return (
        *_numbers(digest),
        _growing(digest),
        _clusters(digest),
        _regressions(digest),
        _fixed(digest),
        _unremedied(digest),
        _remedies(digest),
        _areas(digest),
        _alive(digest),
    )


def _numbers(digest: Digest) -> tuple[Part, ...]:
    both = (
        (_words("New issues"), _figure(digest.issues), _figure(digest.issues_before)),
        (_words("of them failures"), _figure(digest.failures), _figure(digest.failures_before)),
    )
    weeks = [(_words(one.week), _figure(one.failures), _figure(one.issues)) for one in digest.weeks]
    kinds = [(_words(kind_words(one.value)), _figure(one.reports)) for one in digest.kinds]
    hardware = [(_words(one.value), _figure(one.reports)) for one in digest.hardware]
    hardware.append((_words("none named"), _figure(digest.without_hardware)))
    return (
        _part_digest_tables("In numbers", "", ("", "This week", "The week before"), both),
        _part_digest_tables("Failures a week", "", ("Week", "Failures", "Issues"), weeks),
        _part_digest_tables("Failures by kind", "", ("Kind", "Reports"), kinds),
        _part_digest_tables("Hardware named", "", ("Hardware", "Reports"), hardware),
    )


def _growing(digest: Digest) -> Part:
    heads = ("Failure", "This week", "A week before", "p", "q", "Reports")
    rows = [
        (
            _code(one.text or one.title),
            _figure(one.reports),
            _share(one.mean_before, "%.3g"),
            _share(one.p, "%.2g"),
            _share(one.q, "%.2g"),
            _words(numbers_words(one.numbers)),
        )
        for one in digest.growing
    ]
    return _part_digest_tables("Fastest growing", growth_words(digest), heads, rows)


def _clusters(digest: Digest) -> Part:
    heads = ("Failure", "New", "In all", "Reports", "Remedy", "Fix")
    rows = [
        (
            _code(one.text or one.title),
            _figure(one.reports),
            _figure(one.size),
            _words(numbers_words(one.numbers)),
            _code(one.remedy.action) if one.remedy else _words("none known"),
            _words(fix_words(one.fix) if one.fix else "not known"),
        )
        for one in digest.clusters
    ]
    return _part_digest_tables("New failures by cluster", cluster_words(digest), heads, rows)


def _regressions(digest: Digest) -> Part:
    heads = ("First failing", "Last working", "Failure", "Culprit")
    rows = [
        (
            _code_or(group.version, "not said"),
            _code_or(one.regression.last_working, "not said"),
            _issue(one),
            _code_or(one.regression.culprit, "not named"),
        )
        for group in digest.regressions
        for one in group.items
    ]
    words = "" if rows else "No report of the week tells since when it fails."
    return _part_digest_tables("Regressions by version", words, heads, rows)


def _fixed(digest: Digest) -> Part:
    rows = [(_issue(one), _words(fix_words(one.fix)), _words(one.how)) for one in digest.fixed]
    return _part_digest_tables("Newly fixed", fixed_words(digest), ("Failure", "Fix", "This week"), rows)


def _unremedied(digest: Digest) -> Part:
    heads = ("Failure", "Hits", "Comments", "Reactions")
    rows = [
        (_issue(one), _figure(one.hits), _figure(one.comments), _figure(one.reactions))
        for one in digest.unremedied
    ]
    return _part_digest_tables("Most hit, no remedy", unremedied_words(digest), heads, rows)


def _remedies(digest: Digest) -> Part:
    rows = [
        (
            _code(one.remedy.action),
            _words(OUTCOMES[one.remedy.outcome]),
            _words(", ".join(condition_words(one.remedy.conditions)) or "not said"),
            _words(SPEAKERS[one.remedy.by]),
            Cell("", number=one.remedy.number, url=one.remedy.url),
        )
        for one in digest.remedies
    ]
    more = digest.remedies_total - len(digest.remedies)
    words = f"{more:,} more are not listed." if more else ""
    words = words if rows else "None was told in the week."
    return _part_digest_tables(
        "New remedies", words, ("Remedy", "Outcome", "Tried on", "Said by", "In"), rows
    )


def _areas(digest: Digest) -> Part:
    rows = [
        (
            _words(field_words(one.field)),
            _words(value_words(one)),
            _figure(one.reports),
            Cell(mean_words(one), is_figure=True),
        )
        for one in digest.areas
    ]
    words = "" if rows else "Nothing is named in two reports of the week."
    return _part_digest_tables("By area", words, ("Fact", "Value", "Reports", "A week before"), rows)


def _alive(digest: Digest) -> Part:
    rows = [
        (_code(one.text or one.title), _words(one.alive.reason), _words(numbers_words(one.numbers)))
        for one in digest.alive
    ]
    words = "" if rows else "No failure of the week belongs to an issue that was closed before."
    return _part_digest_tables("Closed but alive", words, ("Failure", "What happened", "Reports"), rows)


def numbers_words(numbers: Sequence[int]) -> str:
    """Issue numbers, and how many more."""
    shown = ", ".join(f"#{number}" for number in numbers[:NUMBERS_SHOWN])
    more = len(numbers) - NUMBERS_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _part_digest_tables(
    name: str, words: str, heads: Sequence[str], rows: Iterable[tuple[Cell, ...]]
) -> Part:
    return Part(name, words, tuple(heads), tuple(rows))


def _words(text: str) -> Cell:
    return Cell(text)


def _code(text: str) -> Cell:
    return Cell(text, is_code=True)


def _code_or(text: str | None, otherwise: str) -> Cell:
    return _code(text) if text else _words(otherwise)


def _figure(number: int) -> Cell:
    return Cell(f"{number:,}", is_figure=True)


def _share(value: float, form: str) -> Cell:
    return Cell(form % value, is_figure=True)


def _issue(one: DigestIssue) -> Cell:
    return Cell(one.title, number=one.number, url=one.url)


def notes(digest: Digest) -> tuple[str, ...]:
    """What limits these numbers, a sentence each: an unfinished week, estimated or missing dates."""
    data, told = digest.data, []
    if data.until is None:
        told.append("No issue with a date is stored.")
    elif not data.is_over:
        until = f"{data.until.day} {data.until:%B %Y, %H:%M} UTC"
        told.append(f"The stored data goes up to {until}: the week is not told to its end.")
    if data.estimated:
        told.append(
            f"The dates of {data.estimated:,} of the {digest.issues:,} issues are estimates, as their source "
            "says: an issue may belong to a neighbouring week."
        )
    if data.undated:
        is_one = data.undated == 1
        told.append(
            f"{data.undated:,} stored {'issue has' if is_one else 'issues have'} no date and "
            f"{'is' if is_one else 'are'} in no week."
        )
    return tuple(told)


def growth_words(digest: Digest) -> str:
    """How many failures grow, and by what test; or why that cannot be told."""
    if digest.weeks_before < WEEKS_BEFORE:
        return (
            f"Too few weeks to say: the base has {digest.weeks_before} of the {WEEKS_BEFORE} weeks before "
            "this one, against which growth is measured."
        )
    how = (
        f"{REPORTS_MIN} reports or more, and too many for the mean of the {WEEKS_BEFORE} weeks before "
        f"(Poisson, q < {Q_MAX})"
    )
    if not digest.growing:
        return f"None of {digest.growing_tested:,} failures tested grows: {how}."
    return f"Of {digest.growing_tested:,} failures tested: {how}."


def cluster_words(digest: Digest) -> str:
    """How the week's reports fall into failures."""
    if not digest.failures:
        return "No failure was reported."
    alone = digest.failures_total - digest.repeated_total
    told = (
        f"{counted(digest.failures, 'report')} of {counted(digest.failures_total, 'failure')}; "
        f"{alone:,} of these {'was' if alone == 1 else 'were'} reported this once only"
    )
    more = digest.repeated_total - len(digest.clusters)
    return f"{told}. {more:,} more with other reports are not listed." if more > 0 else f"{told}."


def fixed_words(digest: Digest) -> str:
    """How many fixes came out, how many were merged, and which release was the newest."""
    newest = ""
    if digest.data.newest_release and digest.data.newest_release_at:
        at = digest.data.newest_release_at
        newest = f" The newest release then: {digest.data.newest_release} ({at.day} {at:%B %Y})."
    if not digest.fixed_total:
        return f"No fix of a stored failure came out or was merged in the week.{newest}"
    more = digest.fixed_total - len(digest.fixed)
    rest = f"; {more:,} more are not listed" if more else ""
    told = f"{counted(digest.fixed_total, 'failure')}, fixed by a release or a merge of the week"
    return f"{told}{rest}.{newest}"


def unremedied_words(digest: Digest) -> str:
    """How many failures have no remedy, and what is counted of them."""
    if not digest.unremedied_total:
        return "None: something is said to help against every failure of the week."
    return (
        f"Of {counted(digest.unremedied_total, 'failure')} without a remedy. Hits: the week's reports, their "
        "comments and reactions to date."
    )


def condition_words(told: Conditions) -> tuple[str, ...]:
    """The run on which a remedy was tried, in words."""
    versions = tuple(f"vLLM {version}" for version in told.versions[:2])
    return (*told.gpus[:3], *told.models[:2], *told.backends[:2], *versions)


def field_words(field: str) -> str:
    """How a fact is called."""
    known = {"failure_kind": "Kind of failure", "gpus": "Hardware"}
    return known.get(field) or BACKENDS.get(field.removeprefix("backends."), field)


def value_words(item: AreaCount) -> str:
    """A fact's value as it is said."""
    return kind_words(item.value) if item.field == "failure_kind" else item.value


def kind_words(kind: str) -> str:
    """A kind of failure as it is said."""
    return FAILURES.get(kind, kind)


def mean_words(item: AreaCount) -> str:
    """The mean of the weeks before; a dash where the base is too young."""
    return f"{item.mean_before:.1f}" if item.mean_before is not None else "–"


def counted(number: int, one: str) -> str:
    """A figure with its noun."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def day_words(moment: datetime) -> str:
    """A date as it is said."""
    return f"{moment.day} {moment:%B %Y}"
