"""Which failures are tied: by likeness, by a person who calls them duplicates, by a judgement.

In: what changed. Out: the members with their ties as they follow from what is stored now. A tie stands at
both its ends, as `[number, strength]`.

What an issue brings along for clustering: read from its facts, kept with its place among the clusters.

In: a stored issue and its facts. Out: `Traits`, as JSON that equal facts make equal; with the issue's view
they make a `Member`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlmodel import Session

from app.extract.facts import Facts, Signature
from app.extract.log.signature import mask
from app.extract.rules.rules import load_rule_set
from app.match.clusters.agglomerate import SAID_DUPLICATE
from app.match.clusters.canonical import Standing, evidence_points
from app.match.clusters.ties import Member, tied
from app.match.pairs.features import View, bare_title, message_key, unpack_view
from app.match.pairs.score import load_pair_weights
from app.store.derived.clusters import MemberRecord, find_members
from app.store.derived.links import Pair, find_likeness
from app.store.derived.pair_features import find_pair_views
from app.store.derived.readings import links_to
from app.store.people.judgements import judgements_among
from app.store.records import IssueRecord

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


CLUSTER_RULES = "c1"
"""Raised with every change of how clusters are made: what was clustered under others is clustered again."""
TEXT_CHARS = 300
DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Traits:
    """A failure as it is clustered: its number, the signature of its root cause, and the rest as JSON."""

    number: int
    signature_id: str | None
    told: Mapping[str, Any]


def traits_of(issue: IssueRecord, facts: Facts, repeats: Sequence[int]) -> Traits | None:
    """The traits of an issue; None for one that reports no failure.

    Args:
        issue: as it is stored.
        facts: what its texts tell.
        repeats: the issues it is said to be a duplicate of.
    """
    if issue.is_pull_request or not facts.is_failure:
        return None
    message = facts.error.message if facts.error else ""
    is_mute = "mute" in _axes(message)
    title = bare_title(issue.title)
    axes = _axes(title if is_mute else message)
    signature = root_signature(facts)
    told = {
        "rules": CLUSTER_RULES,
        "text": (signature.text if signature else mask(title))[:TEXT_CHARS],
        "message": "" if is_mute else message_key(message),
        "frame": facts.error.frame if facts.error else None,
        "generic": bool(axes & {"generic", "late"}),
        "late": "late" in axes,
        "names_test": "test" in _axes(issue.title),
        "in_error": sorted(rule.id for rule in load_rule_set("conditions").meeting(message)),
        "evidence": evidence_points(facts, issue.comments, issue.reactions),
        "closed": issue.state == "closed",
        "gone": issue.gone_at is not None,
        "repeats": sorted(set(repeats) - {issue.number}),
    }
    return Traits(issue.number, signature.id if signature else None, told)


def root_signature(facts: Facts) -> Signature | None:
    """The signature of an issue's root cause."""
    return next((item for item in facts.signatures if item.role == "root"), None)


def member_of(number: int, told: Mapping[str, Any], view: View) -> Member:
    """An issue as clusters see it, from its kept traits and its view."""
    return Member(
        number=number,
        view=view,
        message=told["message"],
        frame=told["frame"],
        is_generic=told["generic"],
        is_late=told["late"],
        names_test=told["names_test"],
        in_error=frozenset(told["in_error"]),
    )


def standing_of(number: int, told: Mapping[str, Any]) -> Standing:
    """What an issue is worth to a reader, from its kept traits."""
    return Standing(number, told["evidence"], told["closed"], told["gone"], tuple(told["repeats"]))


def _axes(text: str) -> set[str]:
    """In which ways a line is one that many unlike failures share."""
    return {rule["axis"] for rule in load_rule_set("generic").meeting(text)}
