"""A list of issues narrowed by words and facts, page by page, with the counts of each facet.

A page begins after an issue, not at an offset, so that an issue stored meanwhile moves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlmodel import Session

from app.errors import InputError
from app.extract.facts import Facts
from app.extract.redaction.redact import mask_secrets
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.knowledge.issue.facets import (
    FACETS,
    YES,
    Facet,
    FacetName,
    FacetValue,
    IssueFacets,
    IssuePage,
    IssueQuery,
    ListedIssue,
    ListedRemedy,
    Numbers,
    Sort,
)
from app.knowledge.remedies import remedies_of
from app.knowledge.text.masking import masked
from app.match.search.word_search import search_words
from app.store.derived.facts import find_estimated_dates
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import find_heads, find_repository
from app.store.records import IssueRecord
from app.store.session import Store

FACET_VALUES = 12
_COPIED = "number title url state state_reason labels comments reactions created_at updated_at"
ERROR_CHARS = 160
_NUMBER = re.compile(r"(?:#|https?://[^\s#?]{1,200}/issues/)?([1-9][0-9]{0,8})/?")


def browse(
    store: Store,
    repo: str,
    query: IssueQuery,
    *,
    after: int | None = None,
    limit: int = 30,
    facets: bool = False,
) -> IssuePage:
    """The issues of a repository that a query finds, from the one after `after` on.

    Raises:
        InputError: `after` is not in this list.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if repo_id is None:
            return IssuePage(
                items=(), total=0, start=0, next=None, previous=None, sort=query.sort or "newest"
            )
        known = IssueFacets(session, repo_id)
        if facets:
            known.load()
        scores, ignored = _by_words(session, repo_id, query.q)
        base = _base(known, query, scores)
        chosen = _chosen(known, query, base)
        sort = query.sort or ("relevance" if scores else "newest")
        ranked = _ranked(base.intersection(*chosen.values()), scores or {}, sort)
        start = _start(ranked, after, sort)
        shown = ranked[start : start + limit]
        return IssuePage(
            items=_listed(session, repo_id, repo, shown),
            total=len(ranked),
            start=start,
            sort=sort,
            next=shown[-1] if start + limit < len(ranked) else None,
            previous=_previous(ranked, start, limit),
            ignored_words=ignored,
            facets=_facets(known, base, chosen) if facets else (),
        )


def _by_words(
    session: Session, repo_id: int, text: str
) -> tuple[Mapping[int, float] | None, tuple[str, ...]]:
    """The issues by number or by words, and words left out; None where there is nothing to search by."""
    if not text.strip():
        return None, ()
    if number := _NUMBER.fullmatch(text.strip()):
        return {int(number[1]): 1.0}, ()
    found = search_words(session, repo_id, text)
    if not found.words:
        return None, tuple(text.split()[:5])
    return found.scores, found.unknown


def _base(known: IssueFacets, query: IssueQuery, scores: Mapping[int, float] | None) -> Numbers:
    """The issues that pass what is no facet."""
    base = known.listed(query.since)
    if query.label is not None:
        base &= known.labelled(query.label)
    return base if scores is None else base & scores.keys()


def _chosen(known: IssueFacets, query: IssueQuery, base: Numbers) -> dict[FacetName, Numbers]:
    """For each filter in force the issues that pass it."""
    chosen: dict[FacetName, Numbers] = {}
    for name in FACETS:
        value = getattr(query, name)
        if isinstance(value, bool):
            having = known.groups(name)[YES]
            chosen[name] = having if value else base - having
        elif value is not None:
            chosen[name] = known.having(name, value)
    return chosen


def _ranked(found: Numbers, scores: Mapping[int, float], sort: Sort) -> list[int]:
    if sort == "newest":
        return sorted(found, reverse=True)
    return sorted(found, key=lambda number: (-scores.get(number, 0.0), -number))


def _start(ranked: Sequence[int], after: int | None, sort: Sort) -> int:
    if not after:
        return 0
    if sort == "newest":  # the issue itself may be gone
        return sum(number >= after for number in ranked)
    if after not in ranked:
        raise InputError("cursor: this list has changed since. Begin without it.")
    return ranked.index(after) + 1


def _previous(ranked: Sequence[int], start: int, limit: int) -> int | None:
    if start == 0:
        return None
    return ranked[start - limit - 1] if start > limit else 0


def _facets(known: IssueFacets, base: Numbers, chosen: Mapping[FacetName, Numbers]) -> tuple[Facet, ...]:
    """Each facet's most frequent values among what the other filters find."""
    return tuple(
        Facet(
            name=name,
            values=_counted(known, name, base.intersection(*(s for key, s in chosen.items() if key != name))),
        )
        for name in FACETS
    )


def _counted(known: IssueFacets, name: FacetName, among: Numbers) -> tuple[FacetValue, ...]:
    counts = [(len(numbers & among), value) for value, numbers in known.groups(name).items()]
    counts.sort(key=lambda pair: (-pair[0], pair[1]))
    return tuple(FacetValue(value=value, count=count) for count, value in counts[:FACET_VALUES] if count)


def _listed(session: Session, repo_id: int, repo: str, numbers: Sequence[int]) -> tuple[ListedIssue, ...]:
    heads = find_heads(session, repo_id, numbers)
    facts = find_facts_without_evidence(session, repo_id, numbers)
    fixes = fix_states(session, repo_id, repo, heads, facts)
    estimated = find_estimated_dates(session, repo_id, numbers)
    return tuple(
        _one(repo, head, facts.get(head.number), fixes[head.number], head.number in estimated)
        for head in heads
    )


def _one(
    repo: str, head: IssueRecord, known: Facts | None, fix: FixView, dates_estimated: bool
) -> ListedIssue:
    facts = known or Facts(number=head.number)
    remedy = next((r for r in remedies_of(facts, repo=repo, url=head.url) if r.outcome != "fails"), None)
    error = facts.error.line.removesuffix(": ") if facts.error else ""
    return masked(
        ListedIssue(
            repo=repo,
            **{name: getattr(head, name) for name in _COPIED.split()},
            failure_kind=facts.failure_kind,
            dates_estimated=dates_estimated,
            gpus=facts.gpus,
            models=facts.models,
            backends=tuple(dict.fromkeys(value for values in facts.backends.values() for value in values)),
            vllm_version=facts.versions.get("vllm"),
            has_regression=facts.regression is not None,
            error_type=facts.error.type if facts.error else None,
            error=mask_secrets(error)[:ERROR_CHARS],
            remedy=ListedRemedy(action=remedy.action, outcome=remedy.outcome) if remedy else None,
            fix=fix if facts.is_failure else None,
            summary=facts.summary,
        )
    )
