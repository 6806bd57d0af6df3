"""Embed texts with a server of /v1/embeddings, such as vLLM with an embedding model.

`Embedder` retries, and embeds stored issues. `QuestionEmbedder` answers within a second or returns None, so
that a search continues without a vector; after a failure, the server is not asked for a while.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from app.config import Settings
from app.errors import ReaderError
from app.extract.redact import redact
from app.model_reader.connection import ModelServer, ServedModel, fault_of
from app.store.derived.model_outputs import TextVector, as_bytes

TEXTS_MAX = 16
"""Maximum number of texts per request."""
TEXT_CHARS = 1_000
"""Maximum length of a text, which fits into the 512 tokens of the smallest models."""
QUESTION_DEADLINE_S = 0.8
AWAY_S = 30.0
"""How long a server that did not answer in time is not asked again."""
MODEL_AGE_S = 600.0
"""How long the served model is cached for questions."""


class Embedder(ModelServer):
    """Client of a server that embeds texts."""

    name: ClassVar[str] = "the embeddings server"
    variables: ClassVar[str] = "TRIAGE_EMBEDDINGS_URL, TRIAGE_EMBEDDINGS_MODEL and TRIAGE_EMBEDDINGS_KEY"

    def embed(self, model: ServedModel, texts: Sequence[str]) -> list[bytes]:
        """Embed at most `TEXTS_MAX` texts, as vectors of signed bytes; secrets in the texts are masked first.

        Raises:
            ReaderError: the server does not answer, rejects the request, or now serves another model.
        """
        sent = [redact(text, private=True).text[:TEXT_CHARS] for text in texts]
        status, found = self._request(
            "embeddings", {"model": model.name, "input": sent}, attempts=self._attempts
        )
        if status >= 400:
            raise ReaderError(f"{self.name} refuses texts with {status}: {fault_of(found)}")
        if self._is_other(model):
            raise ReaderError(f"{self.name} serves another model than before")
        vectors = _vectors_of(found)
        if len(vectors) != len(sent) or len({len(vector) for vector in vectors}) != 1:
            raise ReaderError(f"{self.name} does not answer with a vector for each text")
        return [as_bytes(vector) for vector in vectors]


def embedder(settings: Settings, **options: Any) -> Embedder:
    """Return a client for the configured server, which must exist. Options are those of `ModelServer`."""
    key = settings.embeddings_key.get_secret_value() if settings.embeddings_key else None
    return Embedder(settings.embeddings_url or "", settings.embeddings_model, key, **options)


class QuestionEmbedder:
    """Embeds questions with a short timeout, as a person is waiting; thread-safe."""

    def __init__(self, client: Embedder) -> None:
        self._client = client
        self._model: ServedModel | None = None
        self._model_until = self._away_until = 0.0

    def close(self) -> None:
        self._client.close()

    def __call__(self, question: str) -> TextVector | None:
        """Return the question's vector, or None if the server does not answer in time."""
        now = time.monotonic()
        if now < self._away_until:
            return None
        try:
            model = self._model
            if model is None or now > self._model_until:
                self._model = model = self._client.served_model()
                self._model_until = now + MODEL_AGE_S
            return TextVector(model.identity, self._client.embed(model, [question])[0])
        except ReaderError:
            self._model, self._away_until = None, time.monotonic() + AWAY_S
            return None


def _vectors_of(found: dict[str, Any]) -> list[list[float]]:
    """Return the vectors of a response in the order of the texts; an empty list if it is invalid."""
    try:
        rows = sorted(found["data"], key=lambda row: row["index"])
        vectors = [[float(value) for value in row["embedding"]] for row in rows]
    except (KeyError, TypeError, ValueError):
        return []
    return vectors if all(vector and all(map(math.isfinite, vector)) for vector in vectors) else []
