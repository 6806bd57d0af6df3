"""Which issues and pull requests belong to an issue: what is said, and what is alike.

In: a stored issue. Out: `RelatedItem`s, what people said first, then the likest. Links of likeness were made
when the issues were read (`linking`); one pair is weighed on demand, by the same weights. The other issue may
be of another repository: a mention or a fix either way, or an error that is alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from sqlmodel import Session

from app.errors import NotFoundError
from app.extract.facts import Frozen
from app.extract.redact import mask_secrets
from app.knowledge.answers import MatchBand
from app.knowledge.linking import score_pair
from app.match.pairs import band_of_score
from app.store.issues import find_heads, find_repository, get_issue
from app.store.judgements import Verdict, judged_pairs
from app.store.links import SIMILAR, find_similar
from app.store.links_across import find_across, find_repositories
from app.store.readings import all_links_to, links_from
from app.store.records import IssueRecord
from app.store.session import Store

Name = tuple[str, int]
"""Repository and number."""
Kind = Literal["duplicate", "similar", "fixes", "fixed_by", "introduced_by", "mentions"]

REVERSED: dict[str, Kind] = {"fixes": "fixed_by", "fixed_by": "fixes", "duplicate": "duplicate"}
"""What a link is called from its other end; every other kind is a mention from there."""
KIND_RANK: dict[Kind, int] = {
    "duplicate": 0, "fixed_by": 1, "fixes": 1, "introduced_by": 2, "mentions": 3, "similar": 4,
}  # fmt: skip
ONE_FAILURE = frozenset({"duplicate", "similar"})
"""Kinds that call two issues one failure; a judgement replaces them."""
SAID: dict[str, Kind] = {kind: kind for kind in KIND_RANK if kind != SIMILAR} | {
    "referenced_by": "mentions", "transferred_to": "mentions", "reverts": "mentions", "relands": "mentions",
}  # fmt: skip
"""What a stored link is called; likeness is not said, it is read on its own."""


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
    """What belongs to an issue: what is said first, then the likest.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.reading() as session:
        repo_id = _repo_id(session, repo, number)
        said = _said(session, repo_id, repo, number)
        named = {(item.repo, item.number) for item in said}
        alike = _alike(session, repo_id, repo, number)
        alike = [item for item in alike if item.band != "related" or (item.repo, item.number) not in named]
        found = _as_judged(session, repo_id, repo, number, [*said, *alike])
        return tuple(sorted(found, key=lambda item: KIND_RANK[item.kind])[:limit])


def likeness_of(store: Store, repo: str, number: int, other: int) -> tuple[RelatedItem, ...]:
    """One pair with its score, linked or not; and what is said of it.

    Raises:
        NotFoundError: one of the two is not stored.
    """
    with store.reading() as session:
        repo_id = _repo_id(session, repo, number)
        target = get_issue(session, repo, other)
        told_all = _said(session, repo_id, repo, number)
        said = [item for item in told_all if (item.repo, item.number) == (repo, other)]
        verdict = _verdicts(session, repo_id, number).get(other)
        if verdict is not None:
            kept = [item for item in said if verdict == "same" or item.kind not in ONE_FAILURE]
            return (*kept, _judged(_item(target, repo, other, "similar", ""), verdict))
        told = score_pair(session, repo_id, number, other)
        if told is None:
            return tuple(said)
        alike = _item(target, repo, other, "similar", told.reason).model_copy(
            update={"band": told.band, "score": told.score, "channel": told.channel}
        )
        return (*said, alike)


def _as_judged(
    session: Session, repo_id: int, repo: str, number: int, items: Sequence[RelatedItem]
) -> list[RelatedItem]:
    """The same relations as people judged them: their word stands above likeness and what a text says."""
    verdicts = _verdicts(session, repo_id, number)
    kept = [
        item for item in items
        if item.repo != repo or item.number not in verdicts or item.kind not in ONE_FAILURE
    ]  # fmt: skip
    same = [other for other, verdict in sorted(verdicts.items()) if verdict == "same"]
    stored = find_heads(session, repo_id, same)
    return [*kept, *(_judged(_item(i, repo, i.number, "similar", ""), "same") for i in stored)]


def _verdicts(session: Session, repo_id: int, number: int) -> dict[int, Verdict]:
    """The issues that people compared with this one, and what they found."""
    return {
        two if one == number else one: verdict
        for (one, two), verdict in judged_pairs(session, repo_id, [number]).items()
    }


def _judged(item: RelatedItem, verdict: Verdict) -> RelatedItem:
    same = verdict == "same"
    return item.model_copy(
        update={
            "band": "same" if same else "related", "score": 1.0 if same else 0.0, "channel": "both",
            "reason": "judged the same failure" if same else "judged another failure",
        }
    )  # fmt: skip


def _repo_id(session: Session, repo: str, number: int) -> int:
    get_issue(session, repo, number)
    found = find_repository(session, repo)
    if found is None:
        raise NotFoundError(f"{repo} is not stored")
    return found


def _said(session: Session, repo_id: int, repo: str, number: int) -> list[RelatedItem]:
    """Links out of the issue and into it, each target once with its strongest kind."""
    names = find_repositories(session)
    kinds: dict[Name, tuple[Kind, str]] = {}
    for link in links_from(session, repo_id, number):
        _keep(kinds, (link.target_repo, link.target_number), link.kind, link.reason)
    for source_repo, source, kind, reason in all_links_to(session, repo, number):
        if kind in SAID and source_repo in names:
            target = names[source_repo], source
            _keep(kinds, target, REVERSED.get(kind, "mentions"), f"said there: {reason}")
    kinds.pop((repo, number), None)
    stored = _heads(session, names, kinds)
    return [
        _item(stored.get(target), *target, kind, reason)
        for target, (kind, reason) in sorted(kinds.items(), key=lambda item: (item[0][0] != repo, item[0]))
    ]


def _heads(session: Session, names: Mapping[int, str], wanted: Iterable[Name]) -> dict[Name, IssueRecord]:
    """The stored ones of these issues."""
    asked = list(wanted)
    found: dict[Name, IssueRecord] = {}
    for key, name in names.items():
        numbers = [number for repo, number in asked if repo == name]
        found |= {(name, issue.number): issue for issue in find_heads(session, key, numbers)}
    return found


def _keep(kinds: dict[Name, tuple[Kind, str]], target: Name, kind: str, reason: str) -> None:
    known = SAID.get(kind)
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
    """The stored links of likeness, the likest first."""
    links = find_similar(session, repo_id, repo, [number]).get(number, [])
    links += find_across(session, repo_id, repo, [number]).get(number, [])
    links.sort(key=lambda link: -(link.score or 0.0))
    issues = _heads(session, find_repositories(session), [(i.target_repo, i.target_number) for i in links])
    return [
        _item(issue, link.target_repo, link.target_number, "similar", link.reason).model_copy(
            update={"band": band_of_score(link.score or 0.0), "score": link.score, "channel": link.channel}
        )
        for link in links
        if (issue := issues.get((link.target_repo, link.target_number))) is not None
    ]
