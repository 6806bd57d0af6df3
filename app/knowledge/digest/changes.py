"""What changed in a time: failures whose fix was released or merged, and remedies that were mentioned.

In: an open session and the time, of which the end is not part. A fix counts only as `fix.state` decides it:
by a release of that time that is known to hold it, or by a merge.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.redaction.redact import mask_secrets
from app.extract.versions import ordered
from app.knowledge.digest.shapes import FixNews, RemedyNews
from app.knowledge.digest.week import MENDED, issue_fields, listed_remedy
from app.knowledge.fix.shapes import FixView
from app.knowledge.fix.state import fix_states
from app.knowledge.remedies import OUTCOME_RANK, remedies_of
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.weeks import maybe_fixed_between, release_dates, remedies_between
from app.store.github.issues import find_heads
from app.store.records import IssueRecord


def fixed_in(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> tuple[tuple[FixNews, ...], dict[int, Facts]]:
    """The failures whose fix was released or merged in this time, and their facts.

    Released ones come first, then the most hit.
    """
    heads, facts = _failures(session, repo_id, maybe_fixed_between(session, repo_id, repo, start, end))
    fixes = fix_states(session, repo_id, repo, heads, facts)
    pulls = {number: pull for number, fix in fixes.items() if (pull := _pull(fix))}
    merges = {one.number: one.merged_at for one in find_heads(session, repo_id, sorted({*pulls.values()}))}
    releases = {ordered(one.tag): one.published_at for one in reversed(release_dates(session, repo_id))}
    found = []
    for head in heads:
        fix = fixes[head.number]
        merged_at = merges.get(pulls.get(head.number, 0))
        release = ordered(fix.released_in)
        released_at = releases.get(release) if release is not None else None
        is_released = released_at is not None and start <= released_at < end
        if fix.state in MENDED and (is_released or (merged_at is not None and start <= merged_at < end)):
            found.append(
                FixNews(
                    **issue_fields(repo, head, facts[head.number]),
                    how="released" if is_released else "merged",
                    merged_at=merged_at,
                    released_at=released_at,
                    fix=fix.model_copy(update={"reason": mask_secrets(fix.reason)}),
                )
            )
    found.sort(key=lambda one: (one.how == "merged", -one.comments - one.reactions, one.number))
    return tuple(found), facts


def _failures(
    session: Session, repo_id: int, numbers: list[int]
) -> tuple[list[IssueRecord], dict[int, Facts]]:
    """Those of these issues that GitHub still has and that report a failure, and their facts."""
    heads = [
        head
        for head in find_heads(session, repo_id, numbers)
        if not head.is_pull_request and head.gone_at is None
    ]
    facts = find_facts_without_evidence(session, repo_id, [head.number for head in heads])
    facts = {number: one for number, one in facts.items() if one.is_failure}
    return [head for head in heads if head.number in facts], facts


def _pull(fix: FixView) -> int | None:
    digits = (fix.pr or "").removeprefix("#")
    return int(digits) if digits.isdigit() else None


def remedies_in(
    session: Session, repo_id: int, repo: str, start: datetime, end: datetime
) -> tuple[RemedyNews, ...]:
    """The remedies of this time's issues and comments that help, or help in part: the surest first."""
    sources = remedies_between(session, repo_id, start, end)
    heads, facts = _failures(session, repo_id, sorted({one.number for one in sources}))
    issues = {head.number: head for head in heads}
    found = []
    for number, source, at in sources:
        if number not in issues:
            continue
        head, known = issues[number], facts[number]
        own = tuple(one for one in known.workarounds if one.source == source and one.outcome != "fails")
        found += [
            RemedyNews(
                remedy=listed_remedy(one),
                title=mask_secrets(head.title),
                told_at=at,
                told_in="comment" if source.startswith("comment:") else "issue",
            )
            for one in remedies_of(known.model_copy(update={"workarounds": own}), repo=repo, url=head.url)
        ]
    found.sort(
        key=lambda one: (
            OUTCOME_RANK[one.remedy.outcome],
            one.remedy.refuted_by - one.remedy.confirmed_by,
            one.remedy.number,
            one.told_at,
            one.remedy.action,
        )
    )
    return tuple(found)
