"""Links issues that are alike, as they are read: the new one against those that are stored.

Issues of two repositories are linked apart from those of one, fewer, and only where their errors are alike.

In: issues with their views and search terms. Out: links of likeness in the archive, at both ends. What an
issue is linked by is kept; read again without a change it keeps its links, so that a rebuild under the same
rules changes nothing. The cost of one issue is bounded by the search (`app.match.pairs.candidates`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from app.match.pairs.candidates import Neighbours, find_all_neighbours
from app.match.pairs.features import View, pack_view, unpack_view
from app.match.pairs.score import PairScore, likest, load_pair_weights, score_pairs
from app.match.search.terms import Terms
from app.store.derived.links import SIMILAR, Pair, find_repositories, replace_across, replace_similar
from app.store.derived.pair_features import find_pair_views, save_pair_views
from app.store.derived.search_index import Key
from app.store.records import LinkRecord

SIMILAR_MAX = 20
"""Links of likeness that an issue has at most."""
RELATED_MAX = 5
"""Of them, those that an issue brings along and that are no more than related."""
SURE = frozenset({"same", "likely"})
ACROSS_MAX = 5
"""Links of likeness with other repositories that an issue has at most."""


@dataclass(frozen=True, slots=True)
class Linkable:
    """An issue to link: what it is compared by, what it is searched by, and whom its text names."""

    number: int
    title: str
    view: View
    terms: Terms
    named: tuple[int, ...] = ()


def link_issues(session: Session, repo_id: int, repo: str, issues: Sequence[Linkable]) -> set[Pair]:
    """Link these issues, whose search terms are indexed already, with those that are stored.

    Returns the pairs within the repository of which a link was removed or written.
    """
    packed = {issue.number: pack_view(issue.view) for issue in issues}
    changed = set(save_pair_views(session, repo_id, packed, version=load_pair_weights().version))
    fresh = [issue for issue in issues if issue.number in changed]
    if not fresh:
        return set()
    near = {i.number: find_all_neighbours(session, repo_id, i.number, i.title, i.terms) for i in fresh}
    wanted = {issue.number: _worth_weighing(issue, near[issue.number]) for issue in fresh}
    # Issues of one batch have neighbours in common: each is fetched and unpacked once.
    asked = {number for found in wanted.values() for number in found}
    kept = find_pair_views(session, repo_id, sorted(asked))
    views = {number: unpack_view(packed) for number, packed in kept.items()}
    links = {issue.number: _links_of(repo, issue, wanted[issue.number], views) for issue in fresh}
    across = _links_across(session, fresh, {number: found.across for number, found in near.items()})
    replace_across(session, repo_id, repo, across, most=ACROSS_MAX)
    return replace_similar(session, repo_id, repo, links, most=SIMILAR_MAX)


def forget_links(session: Session, repo_id: int, repo: str, numbers: Collection[int]) -> set[Pair]:
    """Take the links of likeness from issues that can be read no longer. Returns the pairs they were of."""
    if not numbers:
        return set()
    replace_across(session, repo_id, repo, dict.fromkeys(numbers, ()), most=ACROSS_MAX)
    return replace_similar(session, repo_id, repo, dict.fromkeys(numbers, ()), most=SIMILAR_MAX)


def score_pair(session: Session, repo_id: int, one: int, two: int) -> PairScore | None:
    """What is said of a pair, linked or not; None if one of the two was never read."""
    kept = find_pair_views(session, repo_id, [one, two])
    if one not in kept or two not in kept:
        return None
    return score_pairs(unpack_view(kept[one]), [unpack_view(kept[two])])[0]


def _worth_weighing(issue: Linkable, near: Neighbours) -> list[int]:
    return list(dict.fromkeys([*near.here, *(number for number in issue.named if number != issue.number)]))


def _links_across(
    session: Session, issues: Sequence[Linkable], wanted: Mapping[int, Sequence[Key]]
) -> dict[int, tuple[LinkRecord, ...]]:
    """The links of each issue with issues of other repositories whose errors are like its own."""
    by_repo: dict[int, set[int]] = {}
    for repo_id, number in (key for keys in wanted.values() for key in keys):
        by_repo.setdefault(repo_id, set()).add(number)
    names = find_repositories(session) if by_repo else {}
    views = {
        (repo_id, number): unpack_view(packed)
        for repo_id, numbers in sorted(by_repo.items())
        for number, packed in find_pair_views(session, repo_id, sorted(numbers)).items()
    }
    return {
        issue.number: _alike_across(
            names, issue, {key: views[key] for key in wanted[issue.number] if key in views}
        )
        for issue in issues
    }


def _alike_across(
    names: Mapping[int, str], issue: Linkable, others: Mapping[Key, View]
) -> tuple[LinkRecord, ...]:
    scores = score_pairs(issue.view, list(others.values()))
    told = [
        LinkRecord(names[repo_id], number, SIMILAR, said.reason, said.score, said.channel)
        for (repo_id, number), said in zip(others, scores, strict=True)
        if said.band in SURE and said.channel != "prose"
    ]
    told.sort(key=lambda link: (-(link.score or 0.0), link.target_repo, link.target_number))
    return tuple(told[:ACROSS_MAX])


def _links_of(
    repo: str, issue: Linkable, wanted: Sequence[int], views: Mapping[int, View]
) -> tuple[LinkRecord, ...]:
    numbers = [number for number in wanted if number in views]
    others = [views[number] for number in numbers]
    places = likest(issue.view, others)
    scores = score_pairs(issue.view, [others[at] for at in places])
    return _strongest(repo, {numbers[at]: said for at, said in zip(places, scores, strict=True)})


def _strongest(repo: str, scores: Mapping[int, PairScore]) -> tuple[LinkRecord, ...]:
    ranked = sorted(scores.items(), key=lambda item: (-item[1].score, item[0]))
    firm = [item for item in ranked if item[1].band in ("same", "likely")]
    loose = [item for item in ranked if item[1].band == "related"][:RELATED_MAX]
    return tuple(
        LinkRecord(repo, number, SIMILAR, said.reason, said.score, said.channel)
        for number, said in (*firm, *loose)[:SIMILAR_MAX]
    )
