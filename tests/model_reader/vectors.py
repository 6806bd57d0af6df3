"""A server of /v1/embeddings on the loopback, whose vectors are what a function makes of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.model_reader.server import answering

Vectors = Callable[[Sequence[str]], Sequence[Sequence[float]]]


@contextmanager
def embeddings_server(vectors: Vectors, model: str = "vectors") -> Iterator[tuple[str, list[str]]]:
    """Serve until the end of the `with`: the address, and the texts it was sent so far."""
    sent: list[str] = []

    def answer(body: Any) -> object:
        sent.extend(body["input"])
        made = [list(map(float, vector)) for vector in vectors(body["input"])]
        rows = [{"index": at, "embedding": vector} for at, vector in enumerate(made)]
        return {"model": model, "data": rows[::-1]}

    with answering({"id": model}, answer) as url:
        yield url, sent
