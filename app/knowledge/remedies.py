"""Workarounds of several issues as one list: what works first, nothing twice, failures last."""

from __future__ import annotations

from collections.abc import Iterable

from app.extract.facts import Conditions, Facts
from app.knowledge.answers import Remedy

OUTCOME_RANK = {"works": 0, "partial": 1, "fails": 2}
SPEAKER_RANK = {"maintainer": 0, "reporter": 1, "other": 2}


def remedies_of(facts: Facts, *, repo: str, url: str) -> tuple[Remedy, ...]:
    """One issue's workarounds with their source, best first; tried on the issue's run if nobody said."""
    tried_on = Conditions(
        versions=tuple(facts.versions[key] for key in ("vllm",) if key in facts.versions),
        gpus=facts.gpus, models=facts.models, backends=facts.backends.get("moe", ()),
    )  # fmt: skip
    found = [
        Remedy(
            action=item.action, kind=item.kind, outcome=item.outcome,
            conditions=tried_on if item.conditions == Conditions() else item.conditions,
            by=item.by, confirmed_by=item.confirmed_by, refuted_by=item.refuted_by,
            repo=repo, number=facts.number, url=url,
        )
        for item in facts.workarounds
    ]  # fmt: skip
    return rank_remedies(found)


def rank_remedies(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """In the order in which to try them; a second mention of one action is dropped.

    The order of the input decides between equals: give the likelier issue's remedies first.
    """
    unique: dict[str, Remedy] = {}
    for remedy in sorted(remedies, key=_order):
        unique.setdefault(" ".join(remedy.action.lower().split()), remedy)
    return tuple(unique.values())


def _order(remedy: Remedy) -> tuple[int, int, int]:
    doubt = remedy.refuted_by - remedy.confirmed_by
    return OUTCOME_RANK[remedy.outcome], doubt, SPEAKER_RANK[remedy.by]
