"""The issues and pull requests of any repository that belong to an issue: stated, then the most alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, cast

from sqlmodel import Session

from app.errors import NotFoundError
from app.extract.facts import Frozen
from app.extract.redaction.redact import mask_secrets
from app.knowledge.issue.shapes import EdgeKind
from app.knowledge.issue.stored import LinkEnds, load_links
from app.match.pairs.features import load_features
from app.match.pairs.score import band_of_score, score_pairs
from app.match.search.ranking import Band as MatchBand
from app.store.derived.links import SIMILAR, find_repositories
from app.store.github.issues import find_heads, get_issue
from app.store.people.judgements import Verdict, judged_pairs
from app.store.records import IssueRecord
from app.store.session import Store

Name = tuple[str, int]
"""Repository and number."""
Channel = Literal["log", "prose", "both"]
Kind = Literal["duplicate", "similar", "fixes", "fixed_by", "introduced_by", "mentions"]


class Rank(NamedTuple):
    """The place of a kind of relation in the graph and in the list of related issues; 0 comes first."""

    in_graph: int
    in_list: int = 9


RANKS: dict[EdgeKind, Rank] = {
    "moved_to": Rank(0),
    "introduced_by": Rank(1, 2),
    "fixed_by": Rank(2, 1),
    "fixes": Rank(2, 1),
    "duplicate": Rank(3, 0),
    "same": Rank(4),
    "similar": Rank(5, 4),
    "mentions": Rank(6, 3),
}
_STATED_KINDS: tuple[Kind, ...] = ("duplicate", "fixed_by", "fixes", "introduced_by", "mentions")
STATED: dict[str, Kind] = {kind: kind for kind in _STATED_KINDS}
"""Kinds of stored links that a text states."""
REFERENCED_BY = "referenced_by"
TRANSFERRED_TO = "transferred_to"
_LISTED: dict[str, Kind] = STATED | dict.fromkeys(
    (REFERENCED_BY, TRANSFERRED_TO, "reverts", "relands"), "mentions"
)
_REVERSED: dict[str, Kind] = {"fixes": "fixed_by", "fixed_by": "fixes", "duplicate": "duplicate"}
"""What a link is called from its other end; every other kind is a mention from there."""
_ONE_FAILURE = frozenset({"duplicate", "similar"})
"""Kinds that call two issues one failure; a judgement replaces them."""


class RelatedItem(Frozen):
    """One relation; `band`, `score` and `channel` belong to likeness, stated relations have none."""

    number: int
    repo: str
    title: str
    state: str
    url: str
    kind: Kind
    band: MatchBand | None = None
    score: float | None = None
    channel: Channel | None = None
    reason: str


class Relation(NamedTuple):
    """A relation of an issue, and the issue at its other end where that is stored."""

    name: Name
    kind: Kind
    reason: str
    band: MatchBand | None = None
    score: float | None = None
    channel: Channel | None = None
    issue: IssueRecord | None = None


def related(store: Store, repo: str, number: int, *, limit: int = 20) -> tuple[RelatedItem, ...]:
    """What belongs to an issue: stated relations first, then the most alike.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.reading() as session:
        repo_id = get_issue(session, repo, number)[0]
        links = load_links(session, repo_id, repo, number)
        return tuple(map(_item, relations(session, repo_id, repo, number, links)[:limit]))


def relations(session: Session, repo_id: int, repo: str, number: int, links: LinkEnds) -> list[Relation]:
    """As `related`, from the links of a stored issue."""
    names = find_repositories(session)
    stated, alike = _stated(names, repo, number, links), _alike(repo, links)
    verdicts = _verdicts(session, repo_id, number)
    same = [
        _judged((repo, other), "same") for other, verdict in sorted(verdicts.items()) if verdict == "same"
    ]
    stored = find_stored(session, {one.name for one in (*stated, *alike, *same)})
    named = {one.name for one in stated}
    alike = [one for one in alike if one.name in stored and (one.band != "related" or one.name not in named)]
    judged = {(repo, other) for other in verdicts}
    found = [
        *(one for one in (*stated, *alike) if one.name not in judged or one.kind not in _ONE_FAILURE),
        *(one for one in same if one.name in stored),
    ]
    found.sort(key=lambda one: RANKS[one.kind].in_list)
    return [one._replace(issue=stored.get(one.name)) for one in found]


def likeness_of(store: Store, repo: str, number: int, other: int) -> tuple[RelatedItem, ...]:
    """One pair with its score, linked or not, and the relations stated between the two.

    Raises:
        NotFoundError: one of the two is not stored.
    """
    with store.reading() as session:
        repo_id = get_issue(session, repo, number)[0]
        target = next(iter(find_heads(session, repo_id, [other])), None)
        if target is None:
            raise NotFoundError(f"{repo}#{other} is not stored")
        links = load_links(session, repo_id, repo, number)
        stated = _stated(find_repositories(session), repo, number, links)
        found = [one for one in stated if one.name == (repo, other)]
        verdict = _verdicts(session, repo_id, number).get(other)
        if verdict is not None:
            found = [one for one in found if verdict == "same" or one.kind not in _ONE_FAILURE]
            found.append(_judged((repo, other), verdict))
        elif len(kept := load_features(session, repo_id, {number, other})) == 2:
            pair = score_pairs(kept[number], [kept[other]])[0]
            found.append(Relation((repo, other), "similar", pair.reason, pair.band, pair.score, pair.channel))
        return tuple(_item(one._replace(issue=target)) for one in found)


def _verdicts(session: Session, repo_id: int, number: int) -> dict[int, Verdict]:
    """The issues that people compared with this one, and what they found; their word stands above all."""
    return {
        two if one == number else one: verdict
        for (one, two), verdict in judged_pairs(session, repo_id, [number]).items()
    }


def _judged(name: Name, verdict: Verdict) -> Relation:
    if verdict == "same":
        return Relation(name, "similar", "judged the same failure", "same", 1.0, "both")
    return Relation(name, "similar", "judged another failure", "related", 0.0, "both")


def _stated(names: Mapping[int, str], repo: str, number: int, links: LinkEnds) -> list[Relation]:
    """Links out of the issue and into it, each target once with its strongest kind."""
    kinds: dict[Name, tuple[Kind, str]] = {}
    for link in links.out:
        _keep(kinds, (link.target_repo, link.target_number), link.kind, link.reason)
    for source_repo, source, kind, reason in links.into:
        if kind in _LISTED and source_repo in names:
            target = names[source_repo], source
            _keep(kinds, target, _REVERSED.get(kind, "mentions"), f"stated there: {reason}")
    kinds.pop((repo, number), None)
    return [
        Relation(name, kind, reason)
        for name, (kind, reason) in sorted(kinds.items(), key=lambda item: (item[0][0] != repo, item[0]))
    ]


def _alike(repo: str, links: LinkEnds) -> list[Relation]:
    """The stored links of likeness, the likest first; of equal ones those within the repository."""
    found = [
        Relation(
            (link.target_repo, link.target_number),
            "similar",
            link.reason,
            band_of_score(link.score or 0.0),
            link.score,
            cast("Channel | None", link.channel),
        )
        for link in links.out
        if link.kind == SIMILAR
    ]
    return sorted(found, key=lambda one: (-(one.score or 0.0), one.name[0] != repo, one.name))


def find_stored(session: Session, wanted: Iterable[Name]) -> dict[Name, IssueRecord]:
    """Those of these issues that are stored, without their texts."""
    asked = list(wanted)
    found: dict[Name, IssueRecord] = {}
    for key, name in find_repositories(session).items():
        numbers = [number for repo, number in asked if repo == name]
        found |= {(name, issue.number): issue for issue in find_heads(session, key, numbers)}
    return found


def _keep(kinds: dict[Name, tuple[Kind, str]], target: Name, kind: str, reason: str) -> None:
    known = _LISTED.get(kind)
    strongest = kinds.get(target)
    if known and (strongest is None or RANKS[known].in_list < RANKS[strongest[0]].in_list):
        kinds[target] = (known, reason)


def _item(relation: Relation) -> RelatedItem:
    """The relation as it is listed; of an issue that is not stored only the address is known."""
    known = relation._asdict()
    (repo, number), issue = known.pop("name"), known.pop("issue")
    return RelatedItem(
        number=number,
        repo=repo,
        title=mask_secrets(issue.title) if issue else "",
        state=issue.state if issue else "unknown",
        url=issue.url if issue else f"https://github.com/{repo}/issues/{number}",
        **known,
    )
