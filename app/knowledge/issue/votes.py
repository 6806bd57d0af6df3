"""Votes without accounts: on an issue, and on whether one of its remedies helped.

A visitor is stored as HMAC-SHA256 of an identity and the issue, with a random key per database, so votes on
different issues cannot be linked. Anyone with the database has the key and could test addresses against it.
For votes on an issue the identity is the network address (the network for IPv6): one vote each. For votes on
a remedy it is a random id in a signed cookie. As deleting the cookie makes a new visitor, the votes of one
network address on a remedy are limited.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Literal, get_args

from sqlalchemy.orm import Session

from app.errors import InputError, NotFoundError
from app.extract.facts import Frozen
from app.knowledge.remedies import action_key
from app.store.derived.readings import find_facts_without_evidence
from app.store.github.issues import get_issue
from app.store.people import (
    RemedyBallot,
    count_votes,
    find_secret,
    make_secret,
    remedy_ballots,
    save_remedy_vote,
    save_vote,
    votes_by,
)
from app.store.session import Store

Signal = Literal["works", "easy_fix", "time_saver", "blocking", "common", "flaky", "verified"]
Vote = Literal[1, -1, 0]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
SHARE = 5
"""Most visitors per network address that can vote on a remedy."""
_ISSUE_KEY, _REMEDY_KEY = "votes", "remedy_votes"


class VoteCount(Frozen):
    up: int = 0
    down: int = 0


class IssueVotes(Frozen):
    """All votes on an issue, and the caller's."""

    repo: str
    number: int
    votes: dict[Signal, VoteCount]
    yours: dict[Signal, Vote]


def vote(store: Store, repo: str, number: int, signal: Signal, value: Vote, *, client: str) -> IssueVotes:
    """Set or replace the vote of a visitor (`client` address, stored only as a hash); 0 removes it.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.unit_of_work(changes="votes") as session:
        repo_id, _ = get_issue(session, repo, number)
        visitor = _keyed(make_secret(session, _ISSUE_KEY), f"{repo}#{number}", client)
        save_vote(session, repo_id, number, signal, visitor, value)
        counts, mine = vote_counts(session, repo_id, number), votes_by(session, repo_id, number, visitor)
        return IssueVotes.model_validate({"repo": repo, "number": number, "votes": counts, "yours": mine})


def vote_counts(session: Session, repo_id: int, number: int) -> dict[Signal, VoteCount]:
    found = count_votes(session, repo_id, number)
    return {
        signal: VoteCount(up=found[signal][0], down=found[signal][1]) if signal in found else VoteCount()
        for signal in SIGNALS
    }


class RemedyVotes(Frozen):
    """How many visitors a remedy helped, how many it did not, and the caller's vote."""

    up: int = 0
    down: int = 0
    yours: int = 0


def remedy_id(action: str) -> str:
    """Return the key for votes on an action, the same for all spellings of it."""
    return hashlib.sha256(action_key(action).encode()).hexdigest()[:16]


def vote_on_remedy(
    store: Store, repo: str, number: int, remedy: str, value: Vote, *, cookie: str | None, client: str
) -> str:
    """Set or replace a visitor's vote on a remedy; 0 removes it.

    Args:
        cookie: the visitor's cookie from an earlier call, if any.
        client: the network address, stored only as a hash.

    Returns:
        The visitor's cookie.

    Raises:
        NotFoundError: the issue is not stored, or has no such remedy.
        InputError: `SHARE` other visitors of this network address have voted.
    """
    with store.unit_of_work(changes="votes") as session:
        repo_id, _ = get_issue(session, repo, number)
        facts = find_facts_without_evidence(session, repo_id, [number]).get(number)
        if facts is None or remedy not in {remedy_id(item.action) for item in facts.workarounds}:
            raise NotFoundError(f"#{number} names no such remedy (any more).")
        key = make_secret(session, _REMEDY_KEY)
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
    """Return the votes on an issue's remedies, by remedy id."""
    key = find_secret(session, _REMEDY_KEY)  # none before the first vote on anything
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
    """Return votes for minus votes against, by issue and remedy id."""
    found: dict[tuple[int, str], int] = {}
    for one in remedy_ballots(session, repo_id, numbers):
        found[one.number, one.remedy] = found.get((one.number, one.remedy), 0) + one.value
    return found


def _visitor_in(cookie: str | None, key: bytes) -> str | None:
    """Return the visitor id in a cookie with a valid signature."""
    visitor, _, sign = (cookie or "").partition(".")
    wanted = _keyed(key, "cookie", visitor)[:32]
    return visitor if visitor and hmac.compare_digest(wanted.encode(), sign.encode()) else None


def _keyed(key: bytes, place: str, text: str) -> str:
    return hmac.new(key, f"{place}\n{text}".encode(), hashlib.sha256).hexdigest()
