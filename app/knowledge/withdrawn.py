"""Issues that GitHub no longer has: kept and labelled, and no cluster shows them as the one to read."""

from __future__ import annotations

from sqlmodel import Session

from app.knowledge.cluster_traits import Traits
from app.knowledge.clustering import TIES, Change, update_clusters
from app.store.cluster_members import find_members
from app.store.gone import mark_gone
from app.store.issues import get_repository_name


def withdraw(session: Session, repo_id: int, number: int, reason: str) -> bool:
    """Label an issue as gone, with the reason in at most 20 characters; whether that was new."""
    if not mark_gone(session, repo_id, number, reason):
        return False
    for member in find_members(session, repo_id, [number]).values():
        told = {key: value for key, value in member.traits.items() if key != TIES} | {"gone": True}
        change = Change(told=[Traits(number, member.signature_id, told)])
        update_clusters(session, repo_id, get_repository_name(session, repo_id), change)
    return True
