"""Incremental clustering of failures, after issues are read, linked or judged.

Ties are not stored. Ties and clusters depend only on the stored links, judgements and traits, not on the
order in which these arrived. Only issues connected to a change are clustered again.

A cluster has the id of its canonical issue's root signature if it contains the first issue with that
signature, else a hash of the canonical issue's text and number. Former ids stay as aliases.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.extract.facts import Facts
from app.extract.log.signature import mask, signature_id
from app.knowledge.cluster.families import family_of
from app.match.clusters import (
    BY_PEOPLE,
    Scores,
    choose_canonical,
    cluster_issues,
    evidence_points,
)
from app.match.pairs.features import PairFeatures, load_features
from app.match.pairs.score import chance_of, load_pair_weights, pair_features
from app.match.search.terms import bare_title
from app.store.derived.clusters import (
    ClusterRecord,
    FailureTraits,
    MemberRecord,
    count_reports,
    find_aliases,
    find_clusters,
    find_members,
    first_members,
    members_of,
    remove_aliases,
    remove_members,
    replace_clusters,
    save_aliases,
    save_members,
)
from app.store.derived.links import find_likeness, find_repositories
from app.store.derived.readings import links_to
from app.store.github.presence import mark_gone
from app.store.people import JudgementRecord, Verdict, judgements_among
from app.store.records import IssueRecord, Pair, pair_of

UNPLACED = ""
"""Cluster id of a member not yet in a cluster."""


@dataclass(frozen=True, slots=True)
class Change:
    """A stored change that may affect clusters.

    Attributes:
        failures: traits of the issues just read that report a failure.
        left: issues just read that report none.
        pairs: pairs whose similarity link or judgement was added, removed or rewritten.
    """

    failures: Sequence[FailureTraits] = ()
    left: Collection[int] = ()
    pairs: Collection[Pair] = ()


def update_clusters(session: Session, repo_id: int, repo: str, change: Change) -> None:
    """Update the clusters of a repository after a change that is already stored."""
    moved = _recluster_changed(session, repo_id, repo, change)
    count_reports(session, repo_id, moved.union(item.number for item in change.failures))


def _recluster_changed(session: Session, repo_id: int, repo: str, change: Change) -> set[int]:
    """Recluster the issues that a change may affect and return them."""
    before = find_members(session, repo_id, [*(item.number for item in change.failures), *change.left])
    changed = {
        item.number: MemberRecord(item, before[item.number].cluster_id if item.number in before else UNPLACED)
        for item in change.failures
        if item.number not in before or before[item.number].traits != item
    }
    left = {number: before[number].cluster_id for number in change.left if number in before}
    if not (changed or left or change.pairs):
        return set()
    touched = {number for pair in change.pairs for number in pair} | changed.keys() | left.keys()
    old = [member.traits for number, member in before.items() if number in touched]
    touched |= {target for traits in old for target in traits.repeats}
    new = [member.traits for member in changed.values()]
    signatures = {key for item in (*old, *new) if (key := item.signature_id)}
    firsts = first_members(session, repo_id, signatures)
    save_members(session, repo_id, changed.values())
    remove_members(session, repo_id, left)
    touched |= {number for _, number in firsts.items() ^ first_members(session, repo_id, signatures).items()}
    graph = TieGraph(session, repo_id, repo)
    touched |= graph.read(changed.keys() | left.keys())
    return _recluster(session, repo_id, graph, touched, left)


def _recluster(
    session: Session, repo_id: int, graph: TieGraph, touched: Collection[int], left: Mapping[int, str]
) -> set[int]:
    """Recluster everything connected to these issues, and the clusters it was in.

    Args:
        touched: issues whose ties may have changed.
        left: former cluster id of issues that are no longer in a cluster.

    Returns:
        All reclustered issues.
    """
    numbers: set[int] = set()
    old_ids = set(left.values())
    frontier = set(touched)
    while frontier:
        numbers |= frontier
        graph.read(frontier)
        old_ids |= {graph.members[n].cluster_id for n in frontier if n in graph.members} - {UNPLACED}
        tied = {number for pair in graph.ties for number in pair}
        whole = members_of(session, repo_id, sorted(old_ids))
        frontier = tied.union(*whole.values()) - numbers
    members = {number: graph.members[number] for number in sorted(numbers & graph.members.keys())}
    old = find_clusters(session, repo_id, sorted(old_ids))
    clusters = _cluster_records(session, repo_id, _groups(session, repo_id, graph, members), members)
    of = {number: record.id for record, group in clusters for number in group}
    moved = [replace(m, cluster_id=of[n]) for n, m in members.items() if m.cluster_id != of[n]]
    save_members(session, repo_id, moved)
    removed = [record for key, record in old.items() if key not in of.values()]
    saved = [record for record, _ in clusters if old.get(record.id) != record]
    replace_clusters(session, repo_id, [record.id for record in removed], saved)
    _update_aliases(session, repo_id, removed, members, left)
    return set(members)


def _groups(
    session: Session, repo_id: int, graph: TieGraph, members: Collection[int]
) -> list[tuple[int, ...]]:
    """Return the members in groups; an issue without ties is its own group."""
    tied = load_features(session, repo_id, sorted({number for pair in graph.ties for number in pair}))
    same = [pair for pair in graph.judged("same") if tied.keys() >= set(pair)]
    groups = cluster_issues(tied, graph.ties, same, set(graph.judged("different")), _pair_scorer(tied))
    return [*groups, *((number,) for number in members if number not in tied)]


def _pair_scorer(members: Mapping[int, PairFeatures]) -> Scores:
    """Return a function that scores how likely two members report the same failure; scores are cached."""
    known: dict[Pair, float] = {}

    def scores(number: int, others: Sequence[int]) -> list[float]:
        for other in others:
            if (pair := pair_of(number, other)) not in known:
                known[pair] = chance_of(pair_features(members[number], members[other]))
        return [known[pair_of(number, other)] for other in others]

    return scores


def _cluster_records(
    session: Session, repo_id: int, groups: Sequence[tuple[int, ...]], members: Mapping[int, MemberRecord]
) -> list[tuple[ClusterRecord, tuple[int, ...]]]:
    """Return each group with its cluster record: id, canonical issue and text."""
    best = {group: choose_canonical([members[number].traits for number in group]) for group in groups}
    firsts = first_members(
        session, repo_id, [item.signature_id for item in best.values() if item.signature_id]
    )
    found = []
    for group, item in best.items():
        key = item.signature_id
        if key is None or firsts.get(key) not in group:
            key = signature_id(f"{item.text} | #{item.number}")
        text = item.text if item.signature_id else ""  # a title is no signature
        found.append((ClusterRecord(key, item.number, text), group))
    return found


def _update_aliases(
    session: Session,
    repo_id: int,
    removed: Sequence[ClusterRecord],
    members: Mapping[int, MemberRecord],
    left: Mapping[int, str],
) -> None:
    """Make the ids of removed clusters aliases that lead to the current cluster of their issues."""
    stayed = {member.cluster_id: number for number, member in sorted(members.items(), reverse=True)}
    leads = {
        record.id: record.canonical if record.canonical in members else stayed.get(record.id)
        for record in removed
    }
    leads |= {key: stayed.get(left[number]) for key, number in find_aliases(session, repo_id, left).items()}
    save_aliases(session, repo_id, {key: number for key, number in leads.items() if number is not None})
    remove_aliases(session, repo_id, [key for key, number in leads.items() if number is None])


def withdraw(session: Session, repo_id: int, number: int, reason: str) -> bool:
    """Mark an issue as gone from GitHub, with a reason of at most 20 characters; True if it was not yet.

    The issue is kept, but is no longer chosen as the canonical issue of its cluster.
    """
    if not mark_gone(session, "issue", repo_id, number, reason):
        return False
    for member in find_members(session, repo_id, [number]).values():
        change = Change([replace(member.traits, gone=True)])
        update_clusters(session, repo_id, find_repositories(session)[repo_id], change)
    return True


CLUSTER_RULES = "c5"
"""Version of the clustering rules. When it is raised, issues clustered under an older one are redone."""
TEXT_CHARS = 300
DUPLICATE = "duplicate"
LIKENESS_MOST = 0.9999
"""Upper limit for similarity, below the strength of a tie made by people (`BY_PEOPLE`)."""


class TieGraph:
    """The current ties between failures of a repository, loaded on demand.

    Attributes:
        members: failures that were read, and those linked or judged with them.
        ties: strength of each tie of the failures that were read.
    """

    def __init__(self, session: Session, repo_id: int, repo: str) -> None:
        self._session, self._repo_id, self._repo = session, repo_id, repo
        self._read: set[int] = set()
        self._judgements: dict[int, JudgementRecord] = {}
        self.members: dict[int, MemberRecord] = {}
        self.ties: dict[Pair, float] = {}

    def read(self, numbers: Collection[int]) -> set[int]:
        """Read the ties of these issues; return all issues linked or judged with them, tied or not."""
        new = sorted(set(numbers) - self._read)
        self._read.update(new)
        least = load_pair_weights().likely_from
        likeness = find_likeness(self._session, self._repo_id, self._repo, new, least=least)
        judged = judgements_among(self._session, self._repo_id, new)
        self._judgements |= {item.id: item for item in judged}
        verdicts = {(item.a, item.b): item.verdict for item in judged}
        self._load(new)
        repeats = {
            pair_of(n, other) for n in new if n in self.members for other in self.members[n].traits.repeats
        }
        repeats |= {
            pair_of(number, target)
            for repo_id, number, target in links_to(self._session, self._repo, new, DUPLICATE)
            if repo_id == self._repo_id
        }
        candidates = {*likeness, *repeats, *verdicts}
        others = {number for pair in candidates for number in pair}
        self._load(others)
        open_pairs = {pair for pair in candidates if self.members.keys() >= {*pair}}
        people = {pair for pair in open_pairs if pair in verdicts or pair in repeats}
        self.ties |= dict.fromkeys((p for p in people if verdicts.get(p) != "different"), BY_PEOPLE)
        alike = open_pairs - people - self.ties.keys()
        self.ties |= {pair: min(likeness[pair], LIKENESS_MOST) for pair in alike}
        return others

    def judged(self, verdict: Verdict) -> list[Pair]:
        """Return the pairs read so far with this verdict, newest judgement first."""
        ordered = sorted(self._judgements.items(), reverse=True)
        return [(item.a, item.b) for _, item in ordered if item.verdict == verdict]

    def _load(self, numbers: Collection[int]) -> None:
        missing = set(numbers) - self.members.keys()
        self.members |= find_members(self._session, self._repo_id, missing)


def traits_of(issue: IssueRecord, facts: Facts, repeats: Sequence[int]) -> FailureTraits | None:
    """Return the traits of an issue reported as a duplicate of `repeats`; None if it is not a failure."""
    if issue.is_pull_request or not facts.is_failure:
        return None
    title = bare_title(issue.title)
    signature = next((item for item in facts.signatures if item.role == "root"), None)
    return FailureTraits(
        number=issue.number,
        signature_id=signature.id if signature else None,
        family=family_of(facts, issue.title),
        rules=CLUSTER_RULES,
        text=(signature.text if signature else mask(title))[:TEXT_CHARS],
        frame=facts.error.frame if facts.error else None,
        evidence=evidence_points(facts, issue.comments, issue.reactions),
        closed=issue.state == "closed",
        gone=issue.gone_at is not None,
        repeats=tuple(sorted(set(repeats) - {issue.number})),
    )
