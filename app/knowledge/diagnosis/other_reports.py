"""Remedies for a known failure whose matches have none: from its other reports, else from a failure nearby.

A failure nearby was raised at the same place in the code. It is another failure, so that it is named as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy.orm import Session

from app.knowledge.diagnosis.shapes import RemedySource
from app.knowledge.remedies import Remedy, rank_remedies, remedies_of
from app.knowledge.text.masking import masked_all
from app.store.derived.clusters import clusters_at, find_members, members_of
from app.store.derived.readings import find_facts_without_evidence
from app.store.derived.search_index import Key
from app.store.github.issues import find_heads

NEARBY_MAX = 5
"""A frame of more clusters is one that errors of all kinds pass through."""


def helps(remedies: Iterable[Remedy]) -> bool:
    """Whether one of these did not fail."""
    return any(item.outcome != "fails" for item in remedies)


def remedies_of_others(
    session: Session, repo: str, key: Key, frame: str | None, hidden: Collection[Key]
) -> tuple[tuple[Remedy, ...], RemedySource]:
    """The remedies of the issue's cluster, else of the biggest one with the same frame that has any.

    Args:
        frame: where the error was raised, `file.py:function`.
        hidden: issues that are no answer.
    """
    repo_id, number = key
    member = find_members(session, repo_id, [number]).get(number)
    own = member.cluster_id if member else ""

    def first_helping(clusters: Sequence[str]) -> tuple[Remedy, ...]:
        members = members_of(session, repo_id, clusters)
        for cluster in sorted(members, key=lambda one: (-len(members[one]), one)):
            numbers = [one for one in members[cluster] if (repo_id, one) not in hidden]
            facts = find_facts_without_evidence(session, repo_id, numbers)
            found = rank_remedies(
                remedy
                for head in find_heads(session, repo_id, numbers)
                if head.number in facts and head.gone_at is None
                for remedy in remedies_of(facts[head.number], repo=repo, url=head.url)
            )
            if helps(found):
                return tuple(masked_all(found))
        return ()

    if found := first_helping([own]):
        return found, "cluster"
    # Only now: no index leads from a frame to its clusters.
    near = [one for one in clusters_at(session, repo_id, frame) if one != own] if frame else []
    if found := first_helping(near if len(near) <= NEARBY_MAX else []):
        return found, "same_frame"
    return (), "matches"
