"""Visitors' votes on an issue, without accounts.

A visitor is kept as HMAC-SHA256 of the client's address (the network of an IPv6 one) and the issue, keyed
with a random key of this base: votes on two issues cannot be joined. People behind one address have one vote.
Whoever holds the base holds the key, too, and could try out addresses.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Literal, cast, get_args

from sqlalchemy.orm import Session

from app.extract.facts import Frozen
from app.store.github.issues import get_issue
from app.store.people.votes import count_votes, make_secret, save_vote, votes_by
from app.store.session import Store

Signal = Literal["works", "easy_fix", "time_saver", "blocking", "common", "flaky", "verified"]
Vote = Literal[1, -1, 0]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
_KEY = "votes"


class VoteCount(Frozen):
    up: int = 0
    down: int = 0


class IssueVotes(Frozen):
    """All votes on an issue, and the caller's own."""

    repo: str
    number: int
    votes: dict[Signal, VoteCount]
    yours: dict[Signal, Vote]


def vote(store: Store, repo: str, number: int, signal: Signal, value: Vote, *, client: str) -> IssueVotes:
    """Put the vote of a visitor (`client`, hashed at once) in place of the former one; 0 takes it back.

    Raises:
        NotFoundError: the issue is not stored.
    """
    with store.unit_of_work(changes="votes") as session:
        repo_id, _ = get_issue(session, repo, number)
        visitor = _visitor(make_secret(session, _KEY), repo, number, client)
        save_vote(session, repo_id, number, signal, visitor, value)
        counts, mine = vote_counts(session, repo_id, number), _votes_by(session, repo_id, number, visitor)
        return IssueVotes(repo=repo, number=number, votes=counts, yours=mine)


def vote_counts(session: Session, repo_id: int, number: int) -> dict[Signal, VoteCount]:
    """Every signal with its counts."""
    found = count_votes(session, repo_id, number)
    return {
        signal: VoteCount(up=found[signal][0], down=found[signal][1]) if signal in found else VoteCount()
        for signal in SIGNALS
    }


def _votes_by(session: Session, repo_id: int, number: int, visitor: str) -> dict[Signal, Vote]:
    return cast("dict[Signal, Vote]", votes_by(session, repo_id, number, visitor))


def _visitor(key: bytes, repo: str, number: int, client: str) -> str:
    return hmac.new(key, f"{repo}#{number}\n{client}".encode(), hashlib.sha256).hexdigest()
