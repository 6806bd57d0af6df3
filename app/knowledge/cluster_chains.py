"""Chains of duplicates among a cluster's reports that lead nowhere: in a circle, or to what is gone."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from app.knowledge.cluster_shapes import DuplicateChain
from app.match.canonical import follow_chain
from app.store.issues import find_heads
from app.store.readings import duplicates_of

STEPS_MAX = 8
"""How far a chain is followed."""


def dead_ends(
    session: Session, repo_id: int, repo: str, numbers: Sequence[int]
) -> tuple[DuplicateChain, ...]:
    """The chains from these reports that reach no living issue, each told once, the longest first."""
    repeats: dict[int, tuple[int, ...]] = {}
    asked = list(numbers)
    for _ in range(STEPS_MAX):
        told = duplicates_of(session, repo_id, repo, asked)
        repeats |= {number: (target,) for number, target in told.items()}
        asked = sorted({target for target in told.values() if target not in repeats})
        if not asked:
            break
    if not repeats:
        return ()
    ends = sorted({*repeats, *(target for targets in repeats.values() for target in targets)})
    alive = {head.number for head in find_heads(session, repo_id, ends) if head.gone_at is None}
    found: list[DuplicateChain] = []
    told_of: set[int] = set()
    chains = (follow_chain(number, repeats, alive) for number in numbers if number in repeats)
    for chain in sorted(chains, key=lambda chain: (-len(chain.numbers), chain.numbers)):
        if chain.end == "alive" or chain.numbers[0] in told_of:
            continue
        told_of.update(chain.numbers)
        reason = _reason(chain.numbers, chain.end)
        found.append(DuplicateChain(kind=chain.end, numbers=chain.numbers, reason=reason))
    return tuple(found)


def _reason(numbers: Sequence[int], end: str) -> str:
    path = " → ".join(f"#{number}" for number in numbers)
    if end == "circular":
        return f"{path}: each is said to repeat the next, in a circle; none of them is the original."
    return f"{path}: said to be duplicates of an issue that is gone or not stored."
