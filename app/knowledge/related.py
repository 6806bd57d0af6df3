"""Which issues and pull requests belong to an issue: what is said, and what is alike.

In: a stored issue. Out: `RelatedItem`s, what people said first, then the likest. Likeness is measured with
the issue's own search terms by the same scorer that answers a pasted log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlmodel import Session

from app.errors import NotFoundError
from app.extract.facts import Frozen
from app.extract.redact import mask_secrets
from app.knowledge.answers import MatchBand
from app.knowledge.derive import issue_terms
from app.match.candidates import Candidate, find_candidates, score_one
from app.match.likeness import Scored, rank_candidates
from app.match.terms import ERROR, FRAME, SIGNATURE, TEXT
from app.store.issues import find_issues, find_repository, get_issue
from app.store.readings import all_links_to, links_from
from app.store.records import IssueRecord
from app.store.session import Store

Kind = Literal["duplicate", "similar", "fixes", "fixed_by", "introduced_by", "mentions"]

REVERSED: dict[str, Kind] = {"fixes": "fixed_by", "fixed_by": "fixes", "duplicate": "duplicate"}
"""What a link is called from its other end; every other kind is a mention from there."""
KIND_RANK: dict[Kind, int] = {
    "duplicate": 0, "fixed_by": 1, "fixes": 1, "introduced_by": 2, "mentions": 3, "similar": 4,
}  # fmt: skip
KINDS: dict[str, Kind] = {kind: kind for kind in KIND_RANK}
SIMILAR_MAX = 20


class RelatedItem(Frozen):
    """One relation; `band`, `score` and `channel` belong to likeness, said relations have none."""

    number: int
    repo: str
    title: str
    state: str
    url: str
    kind: Kind
    band: MatchBand | None = None
    score: float | None = None
    channel: Literal["log", "prose", "both"] | None = None
    reason: str


def related(store: Store, repo: str, number: int, *, limit: int = 20) -> tuple[RelatedItem, ...]:
    """What belongs to an issue.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.reading() as session:
        repo_id = _repo_id(session, repo, number)
        said = _said(session, repo_id, repo, number)
        alike = [item for item in _alike(session, repo_id, repo, number) if item.band != "related"]
        known = {item.number for item in said}
        alike = [item for item in alike if item.number not in known or item.band == "same"]
        found = sorted([*said, *alike[:SIMILAR_MAX]], key=lambda item: KIND_RANK[item.kind])
        return tuple(found[:limit])


def likeness_of(store: Store, repo: str, number: int, other: int) -> tuple[RelatedItem, ...]:
    """One pair with its score, linked or not; and what is said of it.

    Raises:
        NotFoundError: one of the two is not stored.
    """
    with store.reading() as session:
        repo_id = _repo_id(session, repo, number)
        get_issue(session, repo, other)
        said = [item for item in _said(session, repo_id, repo, number) if item.number == other]
        scored = [item for item in _alike(session, repo_id, repo, number) if item.number == other]
        if not scored:
            one = score_one(session, issue_terms(session, repo_id, repo, number), (repo_id, other))
            scored = _items(session, repo_id, repo, rank_candidates([one])) if one else []
        return (*said, *scored)


def _repo_id(session: Session, repo: str, number: int) -> int:
    get_issue(session, repo, number)
    found = find_repository(session, repo)
    if found is None:
        raise NotFoundError(f"{repo} is not stored")
    return found


def _said(session: Session, repo_id: int, repo: str, number: int) -> list[RelatedItem]:
    """Links out of the issue and into it, each target once with its strongest kind."""
    kinds: dict[int, tuple[Kind, str]] = {}
    for link in links_from(session, repo_id, number):
        if link.target_repo == repo:
            _keep(kinds, link.target_number, link.kind, link.reason)
    for source_repo, source, kind, reason in all_links_to(session, repo, number):
        if source_repo == repo_id:
            _keep(kinds, source, REVERSED.get(kind, "mentions"), f"said there: {reason}")
    kinds.pop(number, None)
    stored = {issue.number: issue for issue in find_issues(session, repo_id, list(kinds))}
    return [
        _item(stored.get(target), repo, target, kind, reason)
        for target, (kind, reason) in sorted(kinds.items())
    ]


def _keep(kinds: dict[int, tuple[Kind, str]], target: int, kind: str, reason: str) -> None:
    known = KINDS.get(kind)
    strongest = kinds.get(target)
    if known and (strongest is None or KIND_RANK[known] < KIND_RANK[strongest[0]]):
        kinds[target] = (known, reason)


def _item(issue: IssueRecord | None, repo: str, number: int, kind: Kind, reason: str) -> RelatedItem:
    if issue is None:
        url = f"https://github.com/{repo}/issues/{number}"
        return RelatedItem(
            number=number, repo=repo, title="", state="unknown", url=url, kind=kind, reason=reason
        )  # fmt: skip
    return RelatedItem(
        number=number, repo=repo, title=mask_secrets(issue.title), state=issue.state, url=issue.url,
        kind=kind, reason=reason,
    )  # fmt: skip


def _alike(session: Session, repo_id: int, repo: str, number: int) -> list[RelatedItem]:
    terms = issue_terms(session, repo_id, repo, number)
    found = [item for item in find_candidates(session, terms, [repo_id]) if item.key[1] != number]
    return _items(session, repo_id, repo, rank_candidates(found))


def _items(session: Session, repo_id: int, repo: str, scored: Sequence[Scored]) -> list[RelatedItem]:
    issues = {
        issue.number: issue for issue in find_issues(session, repo_id, [s.candidate.key[1] for s in scored])
    }
    return [
        _item(issues[one.candidate.key[1]], repo, one.candidate.key[1], "similar", _reason(one.candidate))
        .model_copy(
            update={
                "band": one.band, "score": round(one.probability, 4), "channel": _channel(one.candidate),
            }
        )
        for one in scored
        if one.candidate.key[1] in issues
    ]  # fmt: skip


def _channel(candidate: Candidate) -> Literal["log", "prose", "both"]:
    log = max(candidate.shares[ERROR], candidate.shares[FRAME], candidate.shares[SIGNATURE]) > 0
    if not log:
        return "prose"
    return "both" if candidate.shares[TEXT] > 0 else "log"


def _reason(candidate: Candidate) -> str:
    words = ", ".join(f"“{mask_secrets(text)[:60]}”" for _, text, _ in candidate.shared[:3])
    return f"shares {words}" if words else "shares little"
