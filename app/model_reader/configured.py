"""The clients that a serving process uses: each is loaded only where the operator named its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.config import Settings

if TYPE_CHECKING:
    from app.model_reader.client import ReaderClient
    from app.model_reader.embeddings import QuestionEmbedder

LOG_DEADLINE_S = 20.0
"""For the reading of a pasted log, while somebody waits."""
LOGS_AT_A_TIME = 4


def question_embedder(settings: Settings) -> QuestionEmbedder | None:
    """What makes vectors of questions."""
    if settings.embeddings_url is None:
        return None
    from app.model_reader.embeddings import QUESTION_DEADLINE_S, QuestionEmbedder, embedder

    return QuestionEmbedder(embedder(settings, attempts=1, parallel=4, deadline_s=QUESTION_DEADLINE_S))


def log_reader(settings: Settings) -> ReaderClient | None:
    """What reads pasted logs: the operator must allow it besides naming the server."""
    if settings.reader_url is None or not settings.reader_logs:
        return None
    from app.model_reader.client import reader_client

    return reader_client(settings, attempts=1, parallel=LOGS_AT_A_TIME, deadline_s=LOG_DEADLINE_S)
