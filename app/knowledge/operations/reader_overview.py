"""How far the reading by a language model is, for status and metrics; no server is asked."""

from __future__ import annotations

from collections.abc import Sequence

from app.extract.facts import Frozen
from app.model_reader.reply import prompt_version
from app.store.derived.model_replies import count_replies, last_model, tokens_today, unread_numbers
from app.store.github.issues import find_repository
from app.store.session import Store


class ReaderStatus(Frozen):
    """One repository's. `waiting`: issues that the model named last has not read as they are now."""

    model: str | None
    outcomes: dict[str, int]
    waiting: int
    values_kept: int
    values_dropped: int
    tokens: int


class ReaderOverview(Frozen):
    """All that is known of the model reader without asking its server."""

    tokens_today: int
    tokens_per_day: int
    repositories: dict[str, ReaderStatus]


def reader_overview(store: Store, repos: Sequence[str], tokens_per_day: int) -> ReaderOverview:
    """How far it is with these repositories."""
    found: dict[str, ReaderStatus] = {}
    with store.reading() as session:
        used = tokens_today(session)
        for repo in repos:
            repo_id = find_repository(session, repo)
            if repo_id is None:
                continue
            counts, model = count_replies(session, repo_id), last_model(session, repo_id)
            found[repo] = ReaderStatus(
                model=model,
                outcomes=dict(counts.outcomes),
                waiting=len(unread_numbers(session, repo_id, model or "", prompt_version())),
                values_kept=counts.kept,
                values_dropped=counts.dropped,
                tokens=counts.tokens,
            )
    return ReaderOverview(tokens_today=used, tokens_per_day=tokens_per_day, repositories=found)
