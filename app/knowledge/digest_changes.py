"""What changed in a week: failures whose fix came out or was merged, and remedies that were told.

In: an open session and the span. Out: the lists of the digest and of the feed. A fix counts only as
`fix_truth` decides it: by a release of the span that is known to hold it, or by a merge in the span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from app.extract.facts import Facts
from app.extract.redact import mask_secrets
from app.knowledge.answers import FixView
from app.knowledge.digest_shapes import Fixing, FixNews, Place, RemedyNews
from app.knowledge.digest_week import MENDED, shown_issue, shown_remedy
from app.knowledge.fix_case import version_of
from app.knowledge.fixstate import fix_states
from app.knowledge.remedies import OUTCOME_RANK, remedies_of
from app.store.issues import find_heads
from app.store.readings import find_facts_without_evidence
from app.store.weeks import (
    DatedRelease,
    ToldRemedy,
    maybe_fixed_between,
    merges_of,
    release_dates,
    remedies_told_between,
)


@dataclass(frozen=True, slots=True)
class Span:
    """From `start` up to `end`, which is not in it."""

    start: datetime
    end: datetime

    def holds(self, moment: datetime | None) -> bool:
        """Whether a moment lies in it."""
        return moment is not None and self.start <= moment < self.end


def fixed_in(
    session: Session, repo_id: int, repo: str, span: Span
) -> tuple[tuple[FixNews, ...], dict[int, Facts]]:
    """The failures whose fix was released or merged in the span, and their facts.

    Released ones come first, then the most hit.
    """
    numbers = maybe_fixed_between(session, repo_id, repo, span.start, span.end)
    heads = [
        head for head in find_heads(session, repo_id, numbers)
        if not head.is_pull_request and head.gone_at is None
    ]  # fmt: skip
    facts = find_facts_without_evidence(session, repo_id, [head.number for head in heads])
    heads = [head for head in heads if head.number in facts and facts[head.number].is_failure]
    fixes = fix_states(session, repo_id, repo, heads, facts)
    merges = merges_of(session, repo_id, sorted({pull for fix in fixes.values() if (pull := _pull(fix))}))
    releases = release_dates(session, repo_id)
    found = []
    for head in heads:
        fix = fixes[head.number]
        if fix.state not in MENDED:
            continue
        merged_at, released_at = merges.get(_pull(fix) or 0), _released_at(fix, releases)
        how = _how(span, merged_at, released_at)
        if how is not None:
            known = {"how": how, "merged_at": merged_at, "released_at": released_at, "fix": _masked(fix)}
            found.append(FixNews(**shown_issue(repo, head, facts[head.number]), **known))
    found.sort(key=lambda one: (one.how == "merged", -one.comments - one.reactions, one.number))
    return tuple(found), facts


def _masked(fix: FixView) -> FixView:
    return fix.model_copy(update={"reason": mask_secrets(fix.reason)})


def _pull(fix: FixView) -> int | None:
    digits = (fix.pr or "").removeprefix("#")
    return int(digits) if digits.isdigit() else None


def _released_at(fix: FixView, releases: Sequence[DatedRelease]) -> datetime | None:
    """When the first release that holds the fix came out."""
    wanted = version_of(fix.released_in) if fix.released_in else None
    if wanted is None:
        return None
    return next((item.published_at for item in releases if version_of(item.tag) == wanted), None)


def _how(span: Span, merged_at: datetime | None, released_at: datetime | None) -> Fixing | None:
    if span.holds(released_at):
        return "released"
    return "merged" if span.holds(merged_at) else None


def remedies_in(
    session: Session, repo_id: int, repo: str, opened: Sequence[int], span: Span
) -> tuple[RemedyNews, ...]:
    """The remedies told in the span that help, or help in part: the surest first.

    Args:
        opened: the issues opened in the span; those of older issues stand in comments of the span.
    """
    told = remedies_told_between(session, repo_id, opened, span.start, span.end)
    by_issue: dict[int, dict[str, ToldRemedy]] = {}
    for item in told:
        by_issue.setdefault(item.number, {})[item.source] = item
    found = _told_remedies(session, repo_id, repo, by_issue)
    return tuple(
        sorted(
            found,
            key=lambda one: (
                OUTCOME_RANK[one.remedy.outcome], one.remedy.refuted_by - one.remedy.confirmed_by,
                one.remedy.number, one.told_at, one.remedy.action,
            ),
        )
    )  # fmt: skip


def _told_remedies(
    session: Session, repo_id: int, repo: str, by_issue: Mapping[int, Mapping[str, ToldRemedy]]
) -> list[RemedyNews]:
    heads = {
        head.number: head for head in find_heads(session, repo_id, sorted(by_issue))
        if not head.is_pull_request and head.gone_at is None
    }  # fmt: skip
    facts = find_facts_without_evidence(session, repo_id, list(heads))
    found = []
    for number, known in facts.items():
        for source, item in by_issue[number].items() if known.is_failure else ():
            own = tuple(one for one in known.workarounds if one.source == source and one.outcome != "fails")
            told = remedies_of(
                known.model_copy(update={"workarounds": own}), repo=repo, url=heads[number].url
            )
            where: Place = "comment" if source.startswith("comment:") else "issue"
            title = mask_secrets(heads[number].title)
            found += [
                RemedyNews(remedy=shown_remedy(one), title=title, told_at=item.told_at, told_in=where)
                for one in told
            ]
    return found
