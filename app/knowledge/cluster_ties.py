"""Which failures are tied: by likeness, by a person who calls them duplicates, by a judgement.

In: what changed. Out: the members with their ties as they follow from what is stored now. A tie stands at
both its ends, as `[number, strength]`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlmodel import Session

from app.knowledge.cluster_traits import DUPLICATE, member_of
from app.match.clusters import SAID_DUPLICATE
from app.match.pairs import load_pair_weights
from app.match.ties import tied
from app.match.views import unpack_view
from app.store.cluster_members import MemberRecord, find_members
from app.store.judgements import judgements_among
from app.store.links import Pair, find_likeness
from app.store.pair_views import find_pair_views
from app.store.readings import links_to

LIKENESS_MOST = 0.9999
"""Likeness never weighs as much as a person's word."""


@dataclass(frozen=True, slots=True)
class ChangedTies:
    """Members to keep, and the ends of all ties that came, went or are of another strength."""

    members: tuple[MemberRecord, ...]
    ends: frozenset[int]


def changed_ties(
    session: Session,
    repo_id: int,
    repo: str,
    placed: Mapping[int, MemberRecord],
    left: Collection[int],
    pairs: Collection[Pair],
) -> ChangedTies:
    """The ties of members that changed, and of pairs that did.

    Args:
        placed: members that are new or changed, with the ties they had.
        left: issues that are no members any more.
        pairs: pairs whose link or judgement changed.
    """
    numbers = sorted({*placed, *(number for pair in pairs for number in pair)})
    likeness = find_likeness(session, repo_id, repo, numbers, least=load_pair_weights().likely_from)
    asked = {_pair(*pair) for pair in pairs} | {pair for pair in likeness if set(pair) & placed.keys()}
    gone = find_members(session, repo_id, left)
    for number, member in (*placed.items(), *gone.items()):
        asked |= {_pair(number, int(other)) for other, _ in member.traits["ties"]}
        asked |= {_pair(number, target) for target in member.traits["repeats"]}
    asked |= {
        _pair(number, target)
        for source, number, target in links_to(session, repo, sorted(placed), DUPLICATE)
        if source == repo_id
    }
    words = {_pair(w.a, w.b): w.verdict for w in judgements_among(session, repo_id, placed)}
    asked |= words.keys()
    words |= {
        _pair(w.a, w.b): w.verdict
        for w in judgements_among(session, repo_id, {n for pair in asked for n in pair} - placed.keys())
    }
    known = find_members(session, repo_id, {n for pair in asked for n in pair} - placed.keys())
    members = {**known, **placed}
    for number in left:
        members.pop(number, None)
    strengths = _said(asked, members, words)
    unsaid = {pair: likeness[pair] for pair in asked if pair not in strengths and pair in likeness}
    strengths |= _alike(session, repo_id, unsaid, members)
    return _with_ties(asked, strengths, members, placed)


def _pair(one: int, two: int) -> Pair:
    return min(one, two), max(one, two)


def _said(
    asked: Collection[Pair], members: Mapping[int, MemberRecord], words: Mapping[Pair, str]
) -> dict[Pair, float | None]:
    """The pairs of which people speak, with the strength of their tie; None for those judged different."""
    found: dict[Pair, float | None] = {}
    for a, b in asked:
        if a not in members or b not in members:
            found[a, b] = None
        elif (a, b) in words:
            found[a, b] = SAID_DUPLICATE if words[a, b] == "same" else None
        elif b in members[a].traits["repeats"] or a in members[b].traits["repeats"]:
            found[a, b] = SAID_DUPLICATE
    return found


def _alike(
    session: Session, repo_id: int, pairs: Mapping[Pair, float], members: Mapping[int, MemberRecord]
) -> dict[Pair, float | None]:
    """The pairs that likeness ties, with the strength of the tie."""
    numbers = sorted({number for pair in pairs for number in pair})
    kept = find_pair_views(session, repo_id, numbers)
    seen = {n: member_of(n, members[n].traits, unpack_view(packed)) for n, packed in kept.items()}
    by_first: dict[int, list[int]] = {}
    for a, b in sorted(pairs):
        if a in seen and b in seen:
            by_first.setdefault(a, []).append(b)
    found: dict[Pair, float | None] = {}
    for a, others in by_first.items():
        told = tied(seen[a], [seen[b] for b in others], [pairs[a, b] for b in others])
        alike = [b for b, is_tied in zip(others, told, strict=True) if is_tied]
        found |= {(a, b): min(pairs[a, b], LIKENESS_MOST) for b in alike}
    return found


def _with_ties(
    asked: Collection[Pair],
    strengths: Mapping[Pair, float | None],
    members: Mapping[int, MemberRecord],
    placed: Mapping[int, MemberRecord],
) -> ChangedTies:
    ties = {
        number: {int(other): float(strength) for other, strength in member.traits["ties"]}
        for number, member in members.items()
    }
    ends: set[int] = set()
    for pair in asked:
        strength = strengths.get(pair)
        for number, other in (pair, pair[::-1]):
            if number not in ties or ties[number].get(other) == strength:
                continue
            ends |= {number, other}
            if strength is None:
                del ties[number][other]
            else:
                ties[number][other] = strength
    saved = []
    for number in sorted((ends & members.keys()) | placed.keys()):
        told = [[other, strength] for other, strength in sorted(ties[number].items())]
        saved.append(replace(members[number], traits={**members[number].traits, "ties": told}))
    return ChangedTies(tuple(saved), frozenset(ends))
