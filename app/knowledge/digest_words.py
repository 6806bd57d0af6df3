"""How a digest says things in words: the same on the page, in the mail and in Markdown."""

from __future__ import annotations

from datetime import datetime

from app.extract.facts import Conditions
from app.knowledge.digest_shapes import AreaCount, Digest
from app.knowledge.growth import Q_MAX, REPORTS_MIN, WEEKS_BEFORE
from app.knowledge.report_labels import BACKENDS, FAILURES


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
