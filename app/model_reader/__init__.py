"""A language model that a team serves itself reads issues too. Off unless an address is set.

    texts ──> prompt (numbered lines, secrets masked) ──> client ──> reply (JSON by a schema)
                                                                       │ kept raw: table `model_reply`
    facts of the rules ──> merge (precedence by field) <── check <─────┘

    titles, root causes, questions ──> embeddings ──> table `issue_vector`, search by questions
    a pasted log, if its owner and the operator allow it ──> prompt, client, check ──> the answer

Both servers are asked through `connection`. A serving process gets its clients here: each is loaded only
where the operator named its server. The model adds only what the text proves: a value without a verbatim
quote at the line it names is dropped and counted, and so is one that the house's own parsers refuse. What a
page displays are fields and quotes; no sentence of the model's leaves this room. `prompt.md` holds the
instructions, `precedence.json` says by field whom to believe.
"""

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
