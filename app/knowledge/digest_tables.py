"""A digest as tables: what the mail and the Markdown show, so that both show the same numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.knowledge.digest_shapes import Digest, DigestIssue
from app.knowledge.digest_words import (
    cluster_words,
    condition_words,
    field_words,
    fixed_words,
    growth_words,
    kind_words,
    mean_words,
    unremedied_words,
    value_words,
)
from app.knowledge.markdown import OUTCOME_WORDS, fix_words
from app.knowledge.report_labels import SPEAKERS

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
        *_numbers(digest), _growing(digest), _clusters(digest), _regressions(digest), _fixed(digest),
        _unremedied(digest), _remedies(digest), _areas(digest), _alive(digest),
    )  # fmt: skip


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
        _part("In numbers", "", ("", "This week", "The week before"), both),
        _part("Failures a week", "", ("Week", "Failures", "Issues"), weeks),
        _part("Failures by kind", "", ("Kind", "Reports"), kinds),
        _part("Hardware named", "", ("Hardware", "Reports"), hardware),
    )


def _growing(digest: Digest) -> Part:
    heads = ("Failure", "This week", "A week before", "p", "q", "Reports")
    rows = [
        (
            _code(one.text or one.title), _figure(one.reports), _share(one.mean_before, "%.3g"),
            _share(one.p, "%.2g"), _share(one.q, "%.2g"), _words(numbers_words(one.numbers)),
        )
        for one in digest.growing
    ]  # fmt: skip
    return _part("Fastest growing", growth_words(digest), heads, rows)


def _clusters(digest: Digest) -> Part:
    heads = ("Failure", "New", "In all", "Reports", "Remedy", "Fix")
    rows = [
        (
            _code(one.text or one.title), _figure(one.reports), _figure(one.size),
            _words(numbers_words(one.numbers)),
            _code(one.remedy.action) if one.remedy else _words("none known"),
            _words(fix_words(one.fix) if one.fix else "not known"),
        )
        for one in digest.clusters
    ]  # fmt: skip
    return _part("New failures by cluster", cluster_words(digest), heads, rows)


def _regressions(digest: Digest) -> Part:
    heads = ("First failing", "Last working", "Failure", "Culprit")
    rows = [
        (
            _code_or(group.version, "not said"), _code_or(one.regression.last_working, "not said"),
            _issue(one), _code_or(one.regression.culprit, "not named"),
        )
        for group in digest.regressions for one in group.items
    ]  # fmt: skip
    words = "" if rows else "No report of the week tells since when it fails."
    return _part("Regressions by version", words, heads, rows)


def _fixed(digest: Digest) -> Part:
    rows = [(_issue(one), _words(fix_words(one.fix)), _words(one.how)) for one in digest.fixed]
    return _part("Newly fixed", fixed_words(digest), ("Failure", "Fix", "This week"), rows)


def _unremedied(digest: Digest) -> Part:
    heads = ("Failure", "Hits", "Comments", "Reactions")
    rows = [
        (_issue(one), _figure(one.hits), _figure(one.comments), _figure(one.reactions))
        for one in digest.unremedied
    ]
    return _part("Most hit, no remedy", unremedied_words(digest), heads, rows)


def _remedies(digest: Digest) -> Part:
    rows = [
        (
            _code(one.remedy.action), _words(OUTCOME_WORDS[one.remedy.outcome]),
            _words(", ".join(condition_words(one.remedy.conditions)) or "not said"),
            _words(SPEAKERS[one.remedy.by]), Cell("", number=one.remedy.number, url=one.remedy.url),
        )
        for one in digest.remedies
    ]  # fmt: skip
    more = digest.remedies_total - len(digest.remedies)
    words = f"{more:,} more are not listed." if more else ""
    words = words if rows else "None was told in the week."
    return _part("New remedies", words, ("Remedy", "Outcome", "Tried on", "Said by", "In"), rows)


def _areas(digest: Digest) -> Part:
    rows = [
        (_words(field_words(one.field)), _words(value_words(one)), _figure(one.reports),
         Cell(mean_words(one), is_figure=True))
        for one in digest.areas
    ]  # fmt: skip
    words = "" if rows else "Nothing is named in two reports of the week."
    return _part("By area", words, ("Fact", "Value", "Reports", "A week before"), rows)


def _alive(digest: Digest) -> Part:
    rows = [
        (_code(one.text or one.title), _words(one.alive.reason), _words(numbers_words(one.numbers)))
        for one in digest.alive
    ]
    words = "" if rows else "No failure of the week belongs to an issue that was closed before."
    return _part("Closed but alive", words, ("Failure", "What happened", "Reports"), rows)


def numbers_words(numbers: Sequence[int]) -> str:
    """Issue numbers, and how many more."""
    shown = ", ".join(f"#{number}" for number in numbers[:NUMBERS_SHOWN])
    more = len(numbers) - NUMBERS_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _part(name: str, words: str, heads: Sequence[str], rows: Iterable[tuple[Cell, ...]]) -> Part:
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
