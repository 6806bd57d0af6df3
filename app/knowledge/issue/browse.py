"""The paginated list of issues, filtered by words and facts, with facet counts.

Filters and facet counts use the same groups, so they agree. The cursor of a page is an issue, not an offset,
so that issues stored meanwhile do not shift the pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import reduce
from operator import and_
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from sqlalchemy.orm import Session

from app.errors import InputError
from app.extract.facts import (
    BACKEND_KEYS,
    FORMER,
    VERSION_KEYS,
    ErrorLine,
    Facts,
    FailureKind,
    Frozen,
    Outcome,
    StatedChange,
)
from app.extract.fields.gpu_names import gpu_doubt
from app.extract.redact import listed_error, mask_secrets, masked_all
from app.extract.versions import check_version, ordered, plain_version
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states, is_vllm
from app.knowledge.issue.facets import FACET_NAMES, YES, FacetName, IssueFacets, Mask
from app.knowledge.issue.stored import IssueHead
from app.knowledge.possible_versions import check_possible
from app.knowledge.remedies import SourcedRemedy, remedies_of
from app.match.search.word_search import search_words
from app.store.derived.cluster_queries import reports_beside
from app.store.derived.facts import (
    Numbers,
    OrderColumn,
    find_estimated_dates,
    find_titles_with,
    numbers_by,
    numbers_labelled,
    numbers_since,
)
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import find_heads, find_repository
from app.store.session import Store

IssueState = Literal["open", "closed"]
Sort = Literal["newest", "relevance", "updated", "comments", "reactions"]
FACET_VALUES = 12
_COLUMNS: dict[str, OrderColumn] = {
    "updated": "updated_at",
    "comments": "comments",
    "reactions": "reactions",
}
WORKAROUNDS_LISTED = 3
_VERSION = re.compile(r"v?\d{1,4}(?:\.\d{1,4}){1,2}(?:\.?(?:rc|post|dev)\d{1,4})?", re.IGNORECASE)
_FULL_VERSION = re.compile(
    r"(?:v\d{1,4}|\d{1,4}\.\d{1,4})\.\d{1,4}(?:\.?(?:rc|post|dev)\d{1,4})?", re.IGNORECASE
)
_NUMBER = re.compile(r"(?:#|https?://[^\s#?]{1,200}/issues/)?([1-9][0-9]{0,8})/?")


def _none_if_empty(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _utc(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is no time that exists in UTC") from None


def or_blank(kind: Any) -> BeforeValidator:
    """Return a validator that reads a blank value as None and documents this in the OpenAPI schema."""
    return BeforeValidator(_none_if_empty, json_schema_input_type=kind | _Blank | None)


def _no_seconds(value: Any) -> Any:
    if isinstance(value, str) and not _DAY.match(value):  # pydantic reads a bare number as seconds
        raise ValueError("is no day or time such as 2026-04-01 or 2026-04-01T09:00:00Z")
    return value


_DAY = re.compile(r"\s*\d{4}-\d\d-\d\d")
_Blank = Annotated[str, Field(pattern=r"^\s*$")]
EMPTY = BeforeValidator(_none_if_empty)
Text = Annotated[str | None, Field(max_length=200), EMPTY]


class IssueQuery(Frozen):
    """The filters of a list, combined with AND. A value that does not occur matches nothing."""

    q: Annotated[str, Field(max_length=500)] = Field(
        "", description="search text: words, an error line, a flag, or #number"
    )
    gpu: Text = None
    arch: Text = Field(None, description="GPU architecture, such as Hopper")
    model: Text = Field(None, description="model family, such as qwen, or model name")
    backend: Text = None
    error_type: Text = None
    failure_kind: Annotated[FailureKind | None, or_blank(FailureKind)] = None
    kind: Annotated[FailureKind | None, or_blank(FailureKind)] = Field(
        None, description="former name of `failure_kind`", json_schema_extra=FORMER
    )
    vllm_version: Annotated[Text, AfterValidator(check_version)] = Field(None, description="failing version")
    state: Annotated[IssueState | None, or_blank(IssueState)] = None
    label: Text = None
    has_workaround: Annotated[bool | None, or_blank(bool)] = None
    has_regression: Annotated[bool | None, or_blank(bool)] = None
    since: Annotated[
        datetime | None, BeforeValidator(_no_seconds), or_blank(datetime | date), AfterValidator(_utc)
    ] = Field(None, description="only issues opened at or after this date or time")
    updated_since: Annotated[
        datetime | None, BeforeValidator(_no_seconds), or_blank(datetime | date), AfterValidator(_utc)
    ] = Field(None, description="only issues updated on GitHub at or after this date or time")
    sort: Annotated[Sort | None, or_blank(Sort)] = Field(
        None,
        description="descending; default: relevance with `q`, otherwise creation date",
    )

    @model_validator(mode="before")
    @classmethod
    def _former_names(cls, value: Any) -> Any:
        """Move a filter from its former name to the current one, which takes precedence."""
        if not isinstance(value, Mapping) or not value.get("kind"):
            return value
        kind = value.get("failure_kind") or value["kind"]
        return {**value, "failure_kind": kind, "kind": None}


class ListedRemedy(StatedChange):
    outcome: Outcome


class ListedIssue(IssueHead):
    """An issue as a row of a list."""

    state_reason: str | None
    failure_kind: FailureKind
    labels: tuple[str, ...]
    comments: int
    reactions: int
    created_at: datetime | None
    updated_at: datetime | None
    dates_estimated: bool = Field(
        description="whether the dates are estimates, according to the imported file"
    )
    gpus: tuple[str, ...]
    models: tuple[str, ...]
    backends: dict[str, tuple[str, ...]]
    versions: dict[str, str | None]
    error: ErrorLine | None = Field(description="root-cause error; its message may be cut")
    has_regression: bool
    workarounds: tuple[SourcedRemedy, ...] = Field(description="best-ranked first; none that failed")
    vllm_version: str | None = Field(description="former name of `versions.vllm`", json_schema_extra=FORMER)
    error_type: str | None = Field(description="former name of `error.type`", json_schema_extra=FORMER)
    remedy: ListedRemedy | None = Field(
        description="former name of `workarounds[0]`", json_schema_extra=FORMER
    )
    fix: FixView | None
    summary: str
    trend: Trend | None = None


class FacetValue(Frozen):
    """A value and the number of issues with it that match all other filters."""

    value: str
    count: int


class IssuePage(Frozen):
    """A page of a list. `next` and `previous` are the cursors (`after`) of the adjacent pages.

    `start` counts the issues before this page. `previous` is 0 for the first page, null if this is the first.
    """

    items: tuple[ListedIssue, ...] = ()
    total: int = 0
    start: int = 0
    next: int | None = None
    previous: int | None = None
    sort: Sort
    ignored_words: tuple[str, ...] = ()
    facets: dict[FacetName, tuple[FacetValue, ...]] = Field(default_factory=dict)


def browse(
    store: Store,
    repo: str,
    query: IssueQuery,
    *,
    after: int | None = None,
    limit: int = 30,
    facets: bool = False,
    among: tuple[int, ...] | None = None,
) -> IssuePage:
    """Return the issues of a repository that match a query, starting behind issue `after`.

    Raises:
        InputError: `after` is not in the list, or `gpu` is no GPU and no issue names it.
        UnknownVersionError: `vllm_version` is not a release.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if is_vllm(repo):
            check_possible(session, repo_id, "vllm_version", query.vllm_version)
        known = IssueFacets(session, repo_id)
        if query.gpu and not known.having("gpu", query.gpu).size and (doubt := gpu_doubt(query.gpu)):
            raise InputError(f"gpu: {doubt}")
        scores, ignored = _search(session, known, repo_id, query.q)
        base = known.listed
        if query.since is not None:
            base = base & known.mask(numbers_since(session, repo_id, "created_at", query.since))
        if query.updated_since is not None:
            base = base & known.mask(numbers_since(session, repo_id, "updated_at", query.updated_since))
        if query.label is not None:
            base = base & known.mask(numbers_labelled(session, repo_id, query.label))
        if among is not None:
            base = base & known.mask(np.array(among, dtype=np.int64))
        if scores is not None:
            base = base & known.mask(np.fromiter(scores, dtype=np.int64, count=len(scores)))
        chosen = _filters(known, query)
        sort = query.sort or ("relevance" if scores else "newest")
        matching = _intersection(base, chosen.values())
        ranked = np.flatnonzero(matching)[::-1]
        if sort == "relevance" and scores:
            ranked = ranked[
                np.argsort([-scores.get(number, 0.0) for number in ranked.tolist()], kind="stable")
            ]
        elif sort in _COLUMNS:
            ranked = _sorted_like(matching, numbers_by(session, repo_id, _COLUMNS[sort]))
        start = _start(ranked, after, sort)
        part: list[int] = ranked[start : start + limit].tolist()
        previous = int(ranked[start - limit - 1]) if start > limit else 0
        return IssuePage(
            items=_listed(session, repo_id, repo, part),
            total=len(ranked),
            start=start,
            sort=sort,
            next=part[-1] if start + limit < len(ranked) else None,
            previous=previous if start else None,
            ignored_words=ignored,
            facets=_facet_counts(known, base, chosen) if facets else {},
        )


def _search(
    session: Session, known: IssueFacets, repo_id: int, text: str
) -> tuple[Mapping[int, float] | None, tuple[str, ...]]:
    """Search by issue number, version or words; return scores (None for a blank text) and the ignored words.

    Among other words only a full version is one of vLLM; a shorter number is more often a size or an amount.
    """
    if not text.strip():
        return None, ()
    if number := _NUMBER.fullmatch(text.strip()):
        return {int(number[1]): 1.0}, ()
    if _VERSION.fullmatch(text.strip()):
        of_version = _of_version(session, known, repo_id, text.strip())
        return of_version, () if of_version else (text.strip(),)
    found = search_words(session, repo_id, text)
    named = [
        word
        for word in text.split()
        if _FULL_VERSION.fullmatch(word) and len(known.having("vllm_version", word))
    ]
    if not found.words and not named:
        return {}, tuple(text.split()[:5])
    each = [_of_version(session, known, repo_id, version) for version in named]
    scores: Mapping[int, float] = found.scores if found.words else each[0]
    return {
        number: score for number, score in scores.items() if all(number in numbers for numbers in each)
    }, found.unknown


def _of_version(session: Session, known: IssueFacets, repo_id: int, version: str) -> dict[int, float]:
    """Score the issues that fail in a version with 1, those whose title names it with 2."""
    plain = plain_version(version)
    named = re.compile(rf"(?<![\w.])v?{re.escape(plain)}(?![\w]|\.\d)", re.IGNORECASE)
    scores = dict.fromkeys(known.having("vllm_version", version).tolist(), 1.0)
    titles = find_titles_with(session, repo_id, plain)
    return scores | {number: 2.0 for number, title in titles.items() if named.search(title)}


def _filters(known: IssueFacets, query: IssueQuery) -> dict[FacetName, Mask]:
    """Return for each active filter the issues that match it."""
    chosen: dict[FacetName, Mask] = {}
    for name in FACET_NAMES:
        value = getattr(query, name)
        if isinstance(value, bool):
            having = known.mask(known.groups(name)[YES])
            chosen[name] = having if value else ~having
        elif value is not None:
            chosen[name] = known.mask(known.having(name, value))
    return chosen


def _intersection(base: Mask, masks: Iterable[Mask]) -> Mask:
    return reduce(and_, masks, base)


def _sorted_like(chosen: Mask, order: Numbers) -> Numbers:
    """Return the chosen issues in the order of `order`, then those missing from it, newest first."""
    placed = order[order < len(chosen)]
    placed = placed[chosen[placed]]
    rest = chosen.copy()
    rest[placed] = False
    return np.concatenate((placed, np.flatnonzero(rest)[::-1]))


def _start(ranked: Numbers, after: int | None, sort: Sort) -> int:
    if not after:
        return 0
    if sort == "newest":  # the issue itself may have been removed
        return int(np.count_nonzero(ranked >= after))
    places = np.flatnonzero(ranked == after)
    if not len(places):
        raise InputError("cursor: this list has changed since. Begin without it.")
    return int(places[0]) + 1


def _facet_counts(
    known: IssueFacets, base: Mask, chosen: Mapping[FacetName, Mask]
) -> dict[FacetName, tuple[FacetValue, ...]]:
    """Count each facet's most frequent values among the issues that match all other filters."""
    found: dict[FacetName, tuple[FacetValue, ...]] = {}
    for name in FACET_NAMES:
        among = _intersection(base, (mask for key, mask in chosen.items() if key != name))
        counts = known.counts(name, among)[:FACET_VALUES]
        found[name] = tuple(FacetValue(value=value, count=count) for count, value in counts)
    return found


def _listed(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> tuple[ListedIssue, ...]:
    heads = find_heads(session, repo_id, numbers)
    known = find_facts_without_evidence(session, repo_id, numbers)
    fixes = fix_states(session, repo_id, repo, heads, known)
    estimated, spread = find_estimated_dates(session, repo_id, numbers), trends(session, repo_id, numbers)
    found = []
    for head in heads:
        facts = known.get(head.number) or Facts(number=head.number)
        remedies = [one for one in remedies_of(facts, repo=repo, url=head.url) if one.outcome != "fails"]
        error = facts.error
        item = ListedIssue.based_on(
            head,
            repo=repo,
            failure_kind=facts.failure_kind,
            dates_estimated=head.number in estimated,
            gpus=facts.gpus,
            models=facts.models,
            backends={key: facts.backends.get(key, ()) for key in BACKEND_KEYS},
            versions={key: facts.versions.get(key) for key in VERSION_KEYS},
            has_regression=facts.is_failure and facts.regression is not None,
            error=listed_error(error),
            workarounds=tuple(map(SourcedRemedy.based_on, remedies[:WORKAROUNDS_LISTED])),
            vllm_version=facts.versions.get("vllm"),
            error_type=error.type if error else None,
            remedy=ListedRemedy.based_on(remedies[0]) if remedies else None,
            fix=fixes[head.number] if facts.is_failure else None,
            summary=facts.summary,
            trend=spread.get(head.number),
        )
        found.append(item)
    return tuple(masked_all(found))


STEPS = 12
"""Number of equal periods between the first and the last report."""


class Trend(Frozen):
    """Reports of a failure over time."""

    reports: tuple[int, ...] = Field(description="counts for equal periods, first to last report")
    first_version: str | None = Field(description="lowest vLLM version that the reports name")
    last_version: str | None


def trend_of(reports: Iterable[tuple[datetime | None, str | None]]) -> Trend | None:
    """Return the trend of (time, vLLM version) reports; None if fewer than two have a time."""
    known = list(reports)
    times = sorted(at for at, _ in known if at is not None)
    if len(times) < 2:
        return None
    span = (times[-1] - times[0]).total_seconds() or 1.0
    counts = [0] * STEPS
    for at in times:
        counts[min(STEPS - 1, int((at - times[0]).total_seconds() / span * STEPS))] += 1
    named = [plain_version(text) for _, text in known if text and ordered(text) is not None]
    placed = sorted(named, key=lambda text: ordered(text) or text)
    first, last = (mask_secrets(placed[0]), mask_secrets(placed[-1])) if placed else (None, None)
    return Trend(reports=tuple(counts), first_version=first, last_version=last)


def trends(session: Session, repo_id: int, numbers: Sequence[int]) -> dict[int, Trend]:
    """Return for each issue the trend of its failure, if others report it too."""
    found: dict[int, list[tuple[datetime | None, str | None]]] = {}
    for number, at, version in reports_beside(session, repo_id, numbers):
        found.setdefault(number, []).append((at, version))
    return {number: trend for number, reports in found.items() if (trend := trend_of(reports))}
