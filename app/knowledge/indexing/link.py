"""Links issues that are alike, as they are read: the new one against those that are stored.

Across repositories only issues with alike errors are linked. An issue whose features did not change keeps its
links, so a rebuild under the same rules changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from app.match.pairs.candidates import find_neighbours
from app.match.pairs.features import PairFeatures, load_features, save_features
from app.match.pairs.score import PairScore, load_pair_weights, score_pairs
from app.match.search.terms import Terms
from app.store.derived.links import SIMILAR, Links, find_repositories, replace_similar
from app.store.derived.search_index import Key
from app.store.records import LinkRecord, Pair

SIMILAR_MAX = 20
"""Links of likeness that an issue has at most."""
RELATED_MAX = 5
"""Of them, those that an issue brings along and that are no more than related."""
SURE = frozenset({"same", "likely"})
ACROSS_MAX = 5
"""Links of likeness with other repositories that an issue has at most."""


@dataclass(frozen=True, slots=True)
class Linkable:
    """An issue to link: what it is compared by, what it is searched by, and the issues its text names."""

    number: int
    title: str
    features: PairFeatures
    terms: Terms
    named: tuple[int, ...] = ()


def link_issues(session: Session, repo_id: int, repo: str, issues: Sequence[Linkable]) -> set[Pair]:
    """Link these issues, whose search terms are indexed already, with those that are stored.

    Returns the pairs within the repository of which a link that may tie was removed or written.
    """
    features = {issue.number: issue.features for issue in issues}
    changed = save_features(session, repo_id, features, version=load_pair_weights().version)
    wanted: dict[int, list[Key]] = {}
    for issue in issues:
        if issue.number in changed:
            near = find_neighbours(session, repo_id, issue.number, issue.title, issue.terms)
            named = ((repo_id, number) for number in issue.named if number != issue.number)
            wanted[issue.number] = list(dict.fromkeys([*near.here, *named, *near.across]))
    if not wanted:
        return set()
    # Issues of one batch have neighbours in common: each is fetched and unpacked once.
    asked: dict[int, set[int]] = {}
    for key, number in (key for keys in wanted.values() for key in keys):
        asked.setdefault(key, set()).add(number)
    known = {
        (key, number): found
        for key, numbers in asked.items()
        for number, found in load_features(session, key, numbers).items()
    }
    names = find_repositories(session)
    here: dict[int, list[LinkRecord]] = {}
    across: dict[int, list[LinkRecord]] = {}
    for number, keys in wanted.items():
        read = [key for key in keys if key in known]
        scores = score_pairs(features[number], [known[key] for key in read])
        ranked = sorted(
            zip(read, scores, strict=True), key=lambda pair: (-pair[1].score, names[pair[0][0]], pair[0][1])
        )
        own = [pair for pair in ranked if pair[0][0] == repo_id]
        firm = [pair for pair in own if pair[1].band in SURE]
        loose = [pair for pair in own if pair[1].band == "related"]
        others = [
            pair
            for pair in ranked
            if pair[0][0] != repo_id and pair[1].band in SURE and pair[1].channel != "prose"
        ]
        here[number] = _records(names, [*firm, *loose[:RELATED_MAX]][:SIMILAR_MAX])
        across[number] = _records(names, others[:ACROSS_MAX])
    return _replace(session, repo_id, repo, here, across)


def forget_links(session: Session, repo_id: int, repo: str, numbers: Collection[int]) -> set[Pair]:
    """Remove the links of likeness of issues that are read no longer; returns pairs as `link_issues` does."""
    none: dict[int, Sequence[LinkRecord]] = dict.fromkeys(numbers, ())
    return _replace(session, repo_id, repo, none, none) if none else set()


def _records(names: dict[int, str], scores: Sequence[tuple[Key, PairScore]]) -> list[LinkRecord]:
    return [
        LinkRecord(names[repo_id], number, SIMILAR, item.reason, item.score, item.channel)
        for (repo_id, number), item in scores
    ]


def _replace(session: Session, repo_id: int, repo: str, here: Links, across: Links) -> set[Pair]:
    replace_similar(session, repo_id, repo, across, most=ACROSS_MAX, across=True)
    changed = replace_similar(session, repo_id, repo, here, most=SIMILAR_MAX)
    least = load_pair_weights().likely_from
    return {pair for pair, score in changed if score >= least}
