"""Whether a remedy helped: visitors' votes on the remedy itself, without accounts.

A visitor is a random id in a cookie that this base signs, so that people behind one address are several. Who
throws the cookie away is a new visitor: one address therefore has a share, so many votes on a remedy. Kept
are HMAC-SHA256 of id and of address with the issue, keyed with a key of this base: neither the id nor the
address, and votes on two issues cannot be joined.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Literal

from sqlalchemy.orm import Session

from app.errors import InputError, NotFoundError
from app.extract.facts import Frozen
from app.knowledge.remedies import action_key
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import get_issue
from app.store.people.votes import RemedyBallot, find_secret, make_secret, remedy_ballots, save_remedy_vote
from app.store.session import Store

Helped = Literal[1, -1, 0]
SHARE = 5
"""Visitors of one network address whose votes on a remedy count."""
_KEY = "remedy_votes"


class RemedyVotes(Frozen):
    """How many visitors a remedy helped, how many it did not, and the visitor's own vote."""

    up: int = 0
    down: int = 0
    yours: int = 0


def remedy_id(action: str) -> str:
    """What votes on an action are kept under: the same for all spellings of it."""
    return hashlib.sha256(action_key(action).encode()).hexdigest()[:16]


def vote_on_remedy(
    store: Store, repo: str, number: int, remedy: str, value: Helped, *, cookie: str | None, client: str
) -> str:
    """Put a visitor's vote in place of the former one; 0 takes it back.

    Args:
        cookie: what this function gave the visitor before, if anything.
        client: the network address, hashed at once.

    Returns:
        The visitor's cookie.

    Raises:
        NotFoundError: the issue is not stored, or has no such remedy.
        InputError: the share of this network address is used up.
    """
    with store.unit_of_work(changes="votes") as session:
        repo_id, _ = get_issue(session, repo, number)
        facts = find_facts_without_evidence(session, repo_id, [number]).get(number)
        if facts is None or remedy not in {remedy_id(item.action) for item in facts.workarounds}:
            raise NotFoundError(f"#{number} names no such remedy (any more).")
        key = make_secret(session, _KEY)
        visitor = _visitor_in(cookie, key) or token_hex(16)
        place = f"{repo}#{number}"
        mine, origin = _keyed(key, place, visitor), _keyed(key, place, f"@{client}")
        cast = [one for one in remedy_ballots(session, repo_id, [number]) if one.remedy == remedy]
        others = sum(one.origin == origin and one.visitor != mine for one in cast)
        if value and others >= SHARE:
            raise InputError(
                f"{SHARE} visitors of your network have voted on this remedy: no more are counted."
            )
        save_remedy_vote(session, repo_id, RemedyBallot(number, remedy, mine, origin, value))
        return f"{visitor}.{_keyed(key, 'cookie', visitor)[:32]}"


def count_remedy_votes(
    session: Session, repo_id: int, repo: str, number: int, *, cookie: str | None = None
) -> dict[str, RemedyVotes]:
    """The votes on an issue's remedies, by remedy id."""
    key = find_secret(session, _KEY)  # none before the first vote on anything
    visitor = _visitor_in(cookie, key) if key else None
    mine = _keyed(key, f"{repo}#{number}", visitor) if key and visitor else ""
    ballots = remedy_ballots(session, repo_id, [number]) if key else []
    return {
        remedy: RemedyVotes(
            up=sum(one.value > 0 for one in of_it),
            down=sum(one.value < 0 for one in of_it),
            yours=next((one.value for one in of_it if one.visitor == mine), 0),
        )
        for remedy in {one.remedy for one in ballots}
        if (of_it := [one for one in ballots if one.remedy == remedy])
    }


def net_remedy_votes(session: Session, repo_id: int, numbers: Sequence[int]) -> Mapping[tuple[int, str], int]:
    """Votes for less votes against, by issue and remedy id."""
    found: dict[tuple[int, str], int] = {}
    for one in remedy_ballots(session, repo_id, numbers):
        found[one.number, one.remedy] = found.get((one.number, one.remedy), 0) + one.value
    return found


def _visitor_in(cookie: str | None, key: bytes) -> str | None:
    """The visitor of a cookie that this base signed."""
    visitor, _, sign = (cookie or "").partition(".")
    wanted = _keyed(key, "cookie", visitor)[:32]
    return visitor if visitor and hmac.compare_digest(wanted.encode(), sign.encode()) else None


def _keyed(key: bytes, place: str, text: str) -> str:
    return hmac.new(key, f"{place}\n{text}".encode(), hashlib.sha256).hexdigest()
