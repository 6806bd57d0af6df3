"""Read issues with a language model that the operator hosts. Off unless its URL is configured.

    texts ──> prompt (numbered lines, secrets masked) ──> client ──> reply (JSON by a schema)
                                                                       │ kept raw: table `model_reply`
    facts of the rules ──> merge                       <── check <─────┘

    titles, root causes, questions ──> embeddings ──> table `issue_vector`, search by questions
    a pasted log, if its owner and the operator allow it ──> prompt, client, check ──> the answer

Both servers are called through `connection`. The server process creates its clients here; each module is
imported only if its server is configured. The model adds only what the text proves: values without a verbatim
quote at the line they cite, or that our own parsers reject, are dropped and counted. Pages show only fields
and quotes, never sentences of the model. `prompt.md` has the instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.config import Settings

if TYPE_CHECKING:
    from app.model_reader.client import ReaderClient
    from app.model_reader.embeddings import QuestionEmbedder

LOG_DEADLINE_S = 20.0
"""Timeout for reading a pasted log, as a person is waiting."""
LOGS_AT_A_TIME = 4


def question_embedder(settings: Settings) -> QuestionEmbedder | None:
    """Return the embedder for questions, or None if none is configured."""
    if settings.embeddings_url is None:
        return None
    from app.model_reader.embeddings import QUESTION_DEADLINE_S, QuestionEmbedder, embedder

    return QuestionEmbedder(embedder(settings, attempts=1, parallel=4, deadline_s=QUESTION_DEADLINE_S))


def log_reader(settings: Settings) -> ReaderClient | None:
    """Return the client that reads pasted logs, or None unless the operator configured and allowed it."""
    if settings.reader_url is None or not settings.reader_logs:
        return None
    from app.model_reader.client import reader_client

    return reader_client(settings, attempts=1, parallel=LOGS_AT_A_TIME, deadline_s=LOG_DEADLINE_S)
