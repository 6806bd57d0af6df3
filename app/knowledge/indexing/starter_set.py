"""Loads the starter cards into an empty base, so that it answers before GitHub was asked."""

from __future__ import annotations

from datetime import UTC, datetime, time
from pathlib import Path

from app.knowledge.indexing.derive import derive_issues
from app.paths import cards_dir
from app.starter.cards import REPO, Card, read_cards
from app.store.github.cards import save_cards
from app.store.github.issues import add_repository, count_issues, save_issues
from app.store.records import CARD, IssueRecord
from app.store.session import Store


def load_starter_set(store: Store, folder: Path | None = None) -> int:
    """Store the cards if nothing of their repository is stored yet; returns how many were loaded.

    Raises:
        CardError: a card is faulty; nothing is stored then.
        StoreError: the database refused.
    """
    cards = read_cards(folder or cards_dir())
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        if count_issues(session, repo_id)["issues"]:
            return 0
        save_cards(session, repo_id, {card.number: card.text for card in cards})
        save_issues(session, repo_id, [_record(card) for card in cards])
        derive_issues(session, repo_id, REPO, [card.number for card in cards])
    return len(cards)


def _record(card: Card) -> IssueRecord:
    """A card as an issue of which GitHub has not told yet."""
    created = datetime.combine(card.created, time(), UTC)
    return IssueRecord(
        number=card.number,
        title=card.title,
        body=card.summary,
        state=card.state,
        url=card.url,
        origin=CARD,
        labels=card.labels,
        created_at=created,
    )
