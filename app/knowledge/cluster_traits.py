"""What an issue brings along for clustering: read from its facts, kept with its place among the clusters.

In: a stored issue and its facts. Out: `Traits`, as JSON that equal facts make equal; with the issue's view
they make a `Member`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.extract.facts import Facts, Signature
from app.extract.normalise import mask
from app.extract.rule_sets import load_rule_set
from app.match.canonical import Standing, evidence_points
from app.match.ties import Member
from app.match.views import View, bare_title, message_key
from app.store.records import IssueRecord

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
        number=number, view=view, message=told["message"], frame=told["frame"], is_generic=told["generic"],
        is_late=told["late"], names_test=told["names_test"],
        in_error=frozenset(told["in_error"]),
    )  # fmt: skip


def standing_of(number: int, told: Mapping[str, Any]) -> Standing:
    """What an issue is worth to a reader, from its kept traits."""
    return Standing(number, told["evidence"], told["closed"], told["gone"], tuple(told["repeats"]))


def _axes(text: str) -> set[str]:
    """In which ways a line is one that many unlike failures share."""
    return {rule["axis"] for rule in load_rule_set("generic").meeting(text)}
