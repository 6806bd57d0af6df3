"""The inbox: new failures that may be duplicates of an older issue, for a maintainer to decide one by one.

A decision is stored as a judgement, which survives every rebuild; decided failures leave the inbox.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field
from sqlalchemy.orm import Session

from app.extract.facts import Facts, Frozen
from app.extract.redact import mask_secrets
from app.extract.text.document import IssueText
from app.knowledge.cluster.judgements import judge
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.excerpts import issue_excerpt
from app.knowledge.diagnosis.markdown import comment_markdown, missing_facts, new_issue
from app.knowledge.diagnosis.shapes import MatchLine
from app.knowledge.iso_week import IsoWeek
from app.match.pairs.score import band_of_score
from app.match.search.ranking import Band
from app.store.derived.links import find_similar
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.weeks import opened_between, opened_span
from app.store.github.issues import find_heads, find_issues, find_repository
from app.store.people import JudgementRecord, judgements_among
from app.store.records import IssueRecord, LinkRecord
from app.store.session import Store

Decision = Literal["accept", "reject", "different"]

WEEKS = 4
"""Weeks for which an issue counts as new."""
REJECTED = "inbox: repeats none"
"""Note of the judgement when a report is decided to be no duplicate of any issue."""


class InboxItem(Frozen):
    """A new failure and the older issue it may duplicate."""

    number: int
    title: str
    opened_at: datetime | None
    candidate: int
    candidate_title: str
    score: float = Field(description="calibrated chance that both are the same failure")
    band: Band | None
    reason: str
    missing: tuple[str, ...] = Field((), description="what the report does not state")


class InboxSide(Frozen):
    """One of the two issues in the side-by-side comparison."""

    number: int
    title: str
    url: str
    state: str
    opened_at: datetime | None
    error: str
    version: str | None
    gpus: tuple[str, ...]
    models: tuple[str, ...]
    lines: tuple[MatchLine, ...] = Field((), description="those that name the error")


class InboxPair(Frozen):
    item: InboxItem
    report: InboxSide
    candidate: InboxSide
    comment: str = Field(description="Markdown for the report; empty where it is not sure enough")


class Inbox(Frozen):
    items: tuple[InboxItem, ...] = ()
    without: int = Field(0, description="new open failures that resemble no other issue")
    decided: int = Field(0, description="new failures on which a judgement is in force")
    chosen: InboxPair | None = None


def inbox(store: Store, repo: str, number: int | None = None) -> Inbox:
    """Return the undecided new failures, likeliest duplicates first; the first, or `number`, with details."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        span = opened_span(session, repo_id)
        if span.last is None:
            return Inbox()
        last = IsoWeek.of(span.last)
        opened = opened_between(session, repo_id, last.shifted(1 - WEEKS).start, last.end)
        numbers = [one.number for one in opened if one.is_failure]
        judged = judgements_among(session, repo_id, numbers)
        decided = {n for one in judged for n in (one.a, one.b) if _is_final(one)}
        heads = {
            head.number: head
            for head in find_heads(session, repo_id, [n for n in numbers if n not in decided])
            if head.state == "open" and head.gone_at is None
        }
        pairs = _candidates(find_similar(session, repo_id, repo, list(heads)), judged)
        wanted = sorted({link.target_number for link in pairs.values()})
        others = {head.number: head for head in find_heads(session, repo_id, wanted)}
        facts = find_facts_without_evidence(session, repo_id, [*heads, *others])
        items = [
            _item(heads[one], others[link.target_number], link, facts.get(one) or Facts(number=one))
            for one, link in pairs.items()
            if link.target_number in others
        ]
        items.sort(key=lambda item: (-item.score, -item.number))
        first = next((item for item in items if item.number == number), items[0] if items else None)
        pair = [heads[first.number], others[first.candidate]] if first else []
        sides = [_side(session, repo_id, head, facts) for head in pair]
        text = next(iter(find_issues(session, repo_id, [first.number])), None) if first else None
    chosen = None
    if first is not None and text is not None:
        chosen = InboxPair(
            item=first, report=sides[0], candidate=sides[1], comment=_comment(store, repo, text)
        )
    return Inbox(
        items=tuple(items), without=len(heads) - len(items), decided=len(decided & {*numbers}), chosen=chosen
    )


def decide(store: Store, repo: str, number: int, candidate: int, decision: Decision) -> None:
    """Store a decision: the same failure, a different one, or no duplicate of any issue.

    Raises:
        NotFoundError, InputError: as `judge` does.
    """
    note = REJECTED if decision == "reject" else "inbox"
    judge(store, repo, number, candidate, "same" if decision == "accept" else "different", note)


def _is_final(judgement: JudgementRecord) -> bool:
    return judgement.verdict == "same" or judgement.note == REJECTED


def _candidates(
    links: Mapping[int, Sequence[LinkRecord]], judged: Sequence[JudgementRecord]
) -> dict[int, LinkRecord]:
    """Return for each new issue the likeliest older one without a judgement of the two."""
    known = {(one.a, one.b) for one in judged}
    found: dict[int, LinkRecord] = {}
    for number, own in links.items():
        for link in own:
            is_older = link.target_number < number
            if is_older and (link.target_number, number) not in known and band_of_score(link.score or 0.0):
                found[number] = link
                break
    return found


def _item(head: IssueRecord, other: IssueRecord, link: LinkRecord, facts: Facts) -> InboxItem:
    return InboxItem(
        number=head.number,
        title=mask_secrets(head.title),
        opened_at=head.created_at,
        candidate=other.number,
        candidate_title=mask_secrets(other.title),
        score=round(link.score or 0.0, 4),
        band=band_of_score(link.score or 0.0),
        reason=link.reason,
        missing=tuple(missing_facts(facts)),
    )


def _side(session: Session, repo_id: int, head: IssueRecord, known: Mapping[int, Facts]) -> InboxSide:
    facts = known.get(head.number) or Facts(number=head.number)
    return InboxSide(
        number=head.number,
        title=mask_secrets(head.title),
        url=head.url,
        state=head.state,
        opened_at=head.created_at,
        error=mask_secrets(facts.error.line) if facts.error else "",
        version=facts.versions.get("vllm"),
        gpus=facts.gpus,
        models=facts.models,
        lines=issue_excerpt(session, repo_id, head.number),
    )


def _comment(store: Store, repo: str, issue: IssueRecord) -> str:
    """Return the comment on a report, as `triage comment` writes it."""
    found = new_issue(IssueText(issue.number, issue.title, issue.body, repo=repo))
    if found is None or not found.log.strip():
        return ""
    answer = diagnose(
        store,
        found.log,
        repos=(repo,),
        vllm_version=found.vllm_version,
        exclude=frozenset({issue.number}),
    )
    return comment_markdown(found, answer)
