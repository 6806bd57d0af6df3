"""Puts failures into clusters as they are read, linked and judged.

In: what changed - traits of issues, links of likeness, judgements. Out: the clusters of the archive, as they
follow from all that is stored: whatever came in which order, the same links, judgements and facts give the
same clusters. Only the cells (`app.match.clusters.components`) that a change touches are put together anew.

An id is that of the canonical issue's root signature, where the cluster holds the first issue with that
signature; else it is made from the text and number of the canonical issue. An id that names no cluster any
more stays as an alias of the cluster in which its canonical issue is.

Issues that GitHub no longer has: kept and labelled, and no cluster shows them as the one to read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session

from app.extract.log.signature import signature_id
from app.knowledge.cluster.ties import Traits, changed_ties, member_of, standing_of
from app.match.clusters.agglomerate import Tie, Word, cluster_issues
from app.match.clusters.canonical import choose_canonical
from app.match.clusters.components import Cell, find_cells
from app.match.clusters.ties import Member
from app.match.pairs.features import unpack_view
from app.match.pairs.score import score_pairs
from app.store.derived.clusters import (
    ClusterRecord,
    MemberRecord,
    cluster_of,
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
from app.store.derived.links import Pair, find_likeness
from app.store.derived.pair_features import find_pair_views
from app.store.github.issues import get_repository_name
from app.store.github.presence import mark_gone
from app.store.people.judgements import JudgementRecord, judgements_among

TIES = "ties"
"""The only one of a member's traits that is not told by its own texts."""
UNPLACED = ""
"""The cluster of a member that is not in one yet."""


@dataclass(frozen=True, slots=True)
class Change:
    """What may alter clusters.

    Attributes:
        told: failures that were read.
        left: issues that were read and report none.
        linked: pairs whose link of likeness came, went or was written again.
        judged: pairs of which a judgement came or ended.
    """

    told: Sequence[Traits] = ()
    left: Collection[int] = ()
    linked: Collection[Pair] = ()
    judged: Collection[Pair] = ()


def update_clusters(session: Session, repo_id: int, repo: str, change: Change) -> None:
    """Bring the clusters of a repository up to date with a change that is stored already."""
    before = find_members(session, repo_id, [*(item.number for item in change.told), *change.left])
    fresh = [item for item in change.told if not _is_known(item, before.get(item.number))]
    left = {number: before[number].cluster_id for number in change.left if number in before}
    if not (fresh or left or change.linked or change.judged):
        return
    seeds = {item.number for item in fresh} | left.keys() | {n for pair in change.judged for n in pair}
    kept = [before[number].signature_id for number in seeds if number in before]
    signatures = {key for key in (*kept, *(item.signature_id for item in fresh)) if key}
    firsts = first_members(session, repo_id, signatures)
    placed = {item.number: _placed(item, before.get(item.number)) for item in fresh}
    ties = changed_ties(session, repo_id, repo, placed, left, {*change.linked, *change.judged})
    seeds |= ties.ends
    touched = {number for cell in _Ties(session, repo_id).cells(seeds) for number in cell.numbers}
    save_members(session, repo_id, ties.members)
    remove_members(session, repo_id, left)
    later = first_members(session, repo_id, signatures)
    touched |= {
        number
        for told in (firsts, later)
        for key, number in told.items()
        if firsts.get(key) != later.get(key)
    }
    _cluster_again(session, repo_id, repo, touched, left)


def overruled(session: Session, repo_id: int, numbers: Collection[int]) -> tuple[JudgementRecord, ...]:
    """The judgements `same` about these issues that are not obeyed, since others call them different."""
    words = [word for word in judgements_among(session, repo_id, numbers) if word.verdict == "same"]
    of = cluster_of(session, repo_id, {number for word in words for number in (word.a, word.b)})
    return tuple(word for word in words if word.a in of and word.b in of and of[word.a] != of[word.b])


def _is_known(item: Traits, kept: MemberRecord | None) -> bool:
    if kept is None:
        return False
    told = {key: value for key, value in kept.traits.items() if key != TIES}
    return item.signature_id == kept.signature_id and item.told == told


def _placed(item: Traits, kept: MemberRecord | None) -> MemberRecord:
    ties = kept.traits[TIES] if kept else []
    cluster_id = kept.cluster_id if kept else UNPLACED
    return MemberRecord(item.number, cluster_id, item.signature_id, {**item.told, TIES: ties})


class _Ties:
    """The members of the archive by their ties, each read once."""

    def __init__(self, session: Session, repo_id: int) -> None:
        self._session, self._repo_id = session, repo_id
        self.members: dict[int, MemberRecord] = {}

    def cells(self, numbers: Iterable[int]) -> tuple[Cell, ...]:
        """The cells of these issues; of what is no member a cell of its own."""
        return find_cells(numbers, self._neighbours)

    def _neighbours(self, numbers: Collection[int]) -> dict[int, dict[int, float]]:
        missing = set(numbers) - self.members.keys()
        self.members |= find_members(self._session, self._repo_id, missing)
        return {number: ties_of(self.members[number]) for number in numbers if number in self.members}


def ties_of(member: MemberRecord) -> dict[int, float]:
    """What a member is tied to, and how strongly."""
    return {int(other): float(strength) for other, strength in member.traits[TIES]}


def _cluster_again(
    session: Session, repo_id: int, repo: str, touched: set[int], left: Mapping[int, str]
) -> None:
    """Put together anew the cells that these issues are in.

    Args:
        touched: issues whose cell may be another than before.
        left: issues that are in no cluster any more, and the one they were in.
    """
    tied = _Ties(session, repo_id)
    while True:
        cells = [cell for cell in tied.cells(touched) if cell.numbers & tied.members.keys()]
        numbers = {number for cell in cells for number in cell.numbers}
        members = {number: tied.members[number] for number in sorted(numbers & tied.members.keys())}
        old_ids = {member.cluster_id for member in members.values()} | set(left.values())
        whole = members_of(session, repo_id, sorted(old_ids - {UNPLACED}))
        more = {number for told in whole.values() for number in told} - numbers
        if not more:
            break
        touched = numbers | more
    old = find_clusters(session, repo_id, sorted(old_ids - {UNPLACED}))
    clusters = _named(session, repo_id, _grouped(session, repo_id, repo, cells, members), members)
    of = {number: record.id for record, group in clusters for number in group}
    moved = [replace(m, cluster_id=of[n]) for n, m in members.items() if m.cluster_id != of[n]]
    save_members(session, repo_id, moved)
    ids = {record.id for record, _ in clusters}
    removed = [record for key, record in old.items() if key not in ids]
    saved = [record for record, _ in clusters if old.get(record.id) != record]
    replace_clusters(session, repo_id, [record.id for record in removed], saved)
    _keep_aliases(session, repo_id, removed, members, left)


def _grouped(
    session: Session, repo_id: int, repo: str, cells: Sequence[Cell], members: Mapping[int, MemberRecord]
) -> list[tuple[int, ...]]:
    """The members in groups, each cell by itself."""
    crowd = sorted(number for cell in cells if len(cell.numbers) > 1 for number in cell.numbers)
    words = [Word(item.a, item.b, item.verdict) for item in judgements_among(session, repo_id, crowd)]
    links = find_likeness(session, repo_id, repo, crowd)
    kept = find_pair_views(session, repo_id, crowd)
    among = {n: member_of(n, members[n].traits, unpack_view(packed)) for n, packed in kept.items()}
    groups: list[tuple[int, ...]] = []
    for cell in cells:
        numbers = sorted(cell.numbers & members.keys())
        if len(numbers) == 1:
            groups.append(tuple(numbers))
            continue
        ties = [
            Tie(a, b, strength)
            for a in numbers
            for b, strength in ties_of(members[a]).items()
            if a < b and b in cell.numbers and strength >= cell.level
        ]
        said = [word for word in words if {word.a, word.b} <= cell.numbers]
        own = {number: among[number] for number in numbers}
        groups += cluster_issues(own, ties, said, _Likeness(own, links)).groups
    return groups


class _Likeness:
    """Likeness within a cell: that of a stored link, else weighed when it is asked for."""

    def __init__(self, members: Mapping[int, Member], links: Mapping[Pair, float]) -> None:
        self._members = members
        self._known = {**links, **{pair[::-1]: score for pair, score in links.items()}}

    def __call__(self, number: int, others: Sequence[int]) -> list[float]:
        missing = [other for other in others if (number, other) not in self._known]
        told = score_pairs(self._members[number].view, [self._members[other].view for other in missing])
        for other, said in zip(missing, told, strict=True):
            self._known[number, other] = self._known[other, number] = said.score
        return [self._known[number, other] for other in others]


def _named(
    session: Session, repo_id: int, groups: Sequence[tuple[int, ...]], members: Mapping[int, MemberRecord]
) -> list[tuple[ClusterRecord, tuple[int, ...]]]:
    """Each group with its canonical issue and id."""
    best = {
        group: choose_canonical([standing_of(number, members[number].traits) for number in group])
        for group in groups
    }
    keys = {members[number].signature_id for number in best.values()}
    firsts = first_members(session, repo_id, [key for key in keys if key])
    found = []
    for group, number in best.items():
        text: str = members[number].traits["text"]
        key = members[number].signature_id
        if key is None or firsts.get(key) not in group:
            key = signature_id(f"{text} | #{number}")
        found.append((ClusterRecord(key, number, text), group))
    return found


def _keep_aliases(
    session: Session,
    repo_id: int,
    removed: Sequence[ClusterRecord],
    members: Mapping[int, MemberRecord],
    left: Mapping[int, str],
) -> None:
    """Let the ids of clusters that are no more lead to where their issues are now."""
    stayed = {member.cluster_id: number for number, member in sorted(members.items(), reverse=True)}
    leads = {
        record.id: record.canonical if record.canonical in members else stayed.get(record.id)
        for record in removed
    }
    leads |= {key: stayed.get(left[number]) for key, number in find_aliases(session, repo_id, left).items()}
    save_aliases(session, repo_id, {key: number for key, number in leads.items() if number is not None})
    remove_aliases(session, repo_id, [key for key, number in leads.items() if number is None])


def withdraw(session: Session, repo_id: int, number: int, reason: str) -> bool:
    """Label an issue as gone, with the reason in at most 20 characters; whether that was new."""
    if not mark_gone(session, repo_id, number, reason):
        return False
    for member in find_members(session, repo_id, [number]).values():
        told = {key: value for key, value in member.traits.items() if key != TIES} | {"gone": True}
        change = Change(told=[Traits(number, member.signature_id, told)])
        update_clusters(session, repo_id, get_repository_name(session, repo_id), change)
    return True
