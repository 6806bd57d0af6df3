"""Derive facts from stored issues in batches, one unit of work each, and load the starter set.

What is stale is computed from the store (`stale_numbers`), so the next run completes one that was killed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from pathlib import Path

from sqlalchemy.orm import Session

from app.errors import NotFoundError
from app.extract.reader import RULES_VERSION
from app.knowledge.indexing.derive import DeriveResult, derive_issues
from app.knowledge.indexing.readers import Readers, reading_apart
from app.paths import cards_dir, release_table
from app.starter.card import REPO, Card, read_cards, read_release_table
from app.store.derived.readings import stale_numbers
from app.store.engine.connect import lock_writers
from app.store.github.issues import (
    add_repository,
    count_issues,
    find_repository,
    numbers_of,
    save_cards,
    save_issues,
)
from app.store.github.releases import REVERT, TABLE, ContainmentAnswer, has_table, save_answers
from app.store.records import CARD, IssueRecord, Progress, Report, quiet
from app.store.session import Store

BATCH = 100
"""Issues per unit of work: enough to amortize its cost, few enough not to block other writers for long."""
AHEAD = 3 * BATCH
"""Issues read ahead while a batch is stored."""

TRIES = 3
"""Attempts to read an issue whose texts change meanwhile. After that it is left to the process that changes
them, which derives it too."""
_ALL = 2**31 - 1


def derive_changed(store: Store, repo: str, numbers: Sequence[int], report: Report = quiet) -> DeriveResult:
    """Derive these issues again, in the order given."""
    return _derive_batches(store, repo, numbers, report, only_stale=False)


def derive_stale(store: Store, repo: str, report: Report = quiet) -> DeriveResult:
    """Derive all issues whose facts are missing or older than their text, comments or rules."""
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        numbers = stale_numbers(session, repo_id, RULES_VERSION)
    return _derive_batches(store, repo, numbers, report, only_stale=True)


def rederive_all(store: Store, repo: str, report: Report = quiet) -> DeriveResult:
    """Derive all stored issues of a repository again.

    Raises:
        NotFoundError: nothing of the repository is stored.
    """
    _, numbers = stored_numbers(store, repo)
    return _derive_batches(store, repo, numbers, report, only_stale=False)


def stored_numbers(store: Store, repo: str) -> tuple[int, list[int]]:
    """Return the repository's key and the numbers of its stored issues and pull requests, ascending.

    Raises:
        NotFoundError: nothing of the repository is stored.
    """
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        if not repo_id:
            raise NotFoundError(f"nothing of {repo} is stored")
        return repo_id, numbers_of(session, repo_id, limit=_ALL)


def _derive_batches(
    store: Store,
    repo: str,
    numbers: Sequence[int],
    report: Report,
    *,
    only_stale: bool,
) -> DeriveResult:
    wanted = list(dict.fromkeys(numbers))
    total = DeriveResult()
    with reading_apart(len(wanted)) as readers:
        for start in range(0, len(wanted), BATCH):
            batch, ahead = wanted[start : start + BATCH], wanted[start : start + AHEAD]
            for _ in range(TRIES):
                total += _derive_batch(store, repo, readers, batch, ahead, only_stale=only_stale)
                if not (batch := readers.outdated):
                    break
            report(Progress("facts", min(start + BATCH, len(wanted)), len(wanted)))
    return total


def _derive_batch(
    store: Store, repo: str, readers: Readers, batch: Sequence[int], ahead: Sequence[int], *, only_stale: bool
) -> DeriveResult:
    with store.reading() as session:
        readers.begin(session, find_repository(session, repo), repo, ahead)
    readers.finish(batch)
    with store.unit_of_work() as session:
        # Serialize with other writers: rows they store now must be seen here or mark the issue stale later.
        lock_writers(session)
        repo_id = add_repository(session, repo)
        if only_stale:
            batch = stale_numbers(session, repo_id, RULES_VERSION, among=batch)
        return derive_issues(session, repo_id, repo, batch, readers.read) if batch else DeriveResult()


def load_starter_set(store: Store, folder: Path | None = None) -> int:
    """Store the release table, and the cards if no issue is stored yet; return the number of cards stored.

    Raises:
        CardError: a card is invalid; nothing is stored then.
    """
    cards = read_cards(folder or cards_dir())
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_release_table(session, repo_id)
        if count_issues(session, repo_id)["issues"]:
            return 0
        save_cards(session, repo_id, {card.number: card.text for card in cards})
        save_issues(session, repo_id, [_record(card) for card in cards])
        derive_issues(session, repo_id, REPO, [card.number for card in cards])
    return len(cards)


def save_release_table(session: Session, repo_id: int) -> None:
    """Store the first release of each pull request of vLLM, unless this table is stored already."""
    table = read_release_table(release_table())
    if has_table(session, repo_id, table.as_of):
        return
    known = [
        ContainmentAnswer(number, tag, True, None, table.as_of, TABLE)
        for number, tag in table.first_release.items()
    ]
    known += [
        ContainmentAnswer(item.number, f"#{item.by}", False, None, item.at, REVERT) for item in table.reverted
    ]
    save_answers(session, repo_id, known)


def _record(card: Card) -> IssueRecord:
    """Return a card as an issue not yet fetched from GitHub."""
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
