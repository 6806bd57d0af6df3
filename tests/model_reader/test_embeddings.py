"""Vectors of issues and questions: kept as signed bytes, sent masked and once, and never waited for long."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import event, text

from app.config import Settings
from app.errors import ReaderError
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.indexing.batches import derive_changed
from app.knowledge.operations.embedding import embed_issues
from app.knowledge.operations.retention import forget_issue
from app.model_reader.embeddings import Embedder, QuestionEmbedder
from app.server.rounds import reading_round
from app.store.derived.model_outputs import TextVector, as_bytes
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.command import triage
from tests.loopback import free_port
from tests.model_reader.vectors import embeddings_server
from tests.samples import REPO, an_issue

TITLES = {
    1: "Tokens come slowly with updates",
    2: "Tokens come slowly with adapters",
    3: "Tokens come slowly with machines",
    **{n: f"Account {n} of something else" for n in range(4, 20)},
}


def like(word: str) -> Callable[[Sequence[str]], list[list[float]]]:
    """Vectors by whether a text holds the word."""
    return lambda texts: [[1.0, 0.2] if word in text else [-0.4, 1.0] for text in texts]


@pytest.fixture
def store(store: Store) -> Store:
    with store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        save_issues(
            session, repo_id, [an_issue(n, title=title, body="It is so.") for n, title in TITLES.items()]
        )
    derive_changed(store, REPO, TITLES)
    return store


def answering(answer: Any, status: int = 200) -> Embedder:
    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "vectors"}]})
        return httpx.Response(status, json=answer(request) if callable(answer) else answer)

    return Embedder("http://vectors.test", attempts=1, transport=httpx.MockTransport(serve))


def test_a_vector_keeps_its_direction_in_signed_bytes() -> None:
    vector = np.random.default_rng(0).normal(size=384)
    kept = np.frombuffer(as_bytes(vector), dtype=np.int8).astype(float)
    assert kept @ vector / np.linalg.norm(kept) / np.linalg.norm(vector) > 0.9998
    assert as_bytes([0.0, 0.0]) == b"\0\0"


def test_secrets_are_masked_before_a_text_is_sent() -> None:
    sent: list[str] = []

    def note(request: httpx.Request) -> Any:
        sent.extend(json.loads(request.content)["input"])
        return {"data": [{"index": 0, "embedding": [1, 2]}]}

    with answering(note) as client:
        client.embed(
            client.served_model(), ["fails with hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345 on db-7.corp.example"]
        )
    assert "AbCdEf" not in sent[0]
    assert "fails with" in sent[0]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": ["nan"]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]},
    ],
)
def test_what_is_no_vector_for_each_text_is_refused(answer: Any) -> None:
    with answering(answer) as client, pytest.raises(ReaderError, match="vector for each text"):
        client.embed(client.served_model(), ["a text"])


def test_a_server_that_refuses_is_quoted() -> None:
    with (
        answering({"error": {"message": "no such\nmodel"}}, 400) as client,
        pytest.raises(ReaderError, match="400: no such model"),
    ):
        client.embed(client.served_model(), ["a text"])


def test_each_text_is_sent_once_and_again_only_when_it_changes(store: Store) -> None:
    with embeddings_server(like("slowly")) as (url, sent), Embedder(url) as client:
        assert embed_issues(store, REPO, client, limit=3).made == 3
        assert (embed_issues(store, REPO, client).made, len(sent)) == (len(TITLES) - 3, len(TITLES))
        with store.unit_of_work() as session:
            changed = [
                an_issue(1, title="Another title", body="It is so."),
                an_issue(2, title=TITLES[2], body="And more."),
            ]
            save_issues(session, 1, changed)
        derive_changed(store, REPO, [1, 2])
        again = embed_issues(store, REPO, client)
        assert (again.made, again.same, sent[-1]) == (1, 1, "Another title")
        assert embed_issues(store, REPO, client).same == 0
    with embeddings_server(like("slowly"), "other") as (url, sent), Embedder(url) as client:
        assert embed_issues(store, REPO, client).made == len(TITLES)


def test_a_text_that_is_taken_down_takes_its_vector_along(store: Store) -> None:
    with embeddings_server(like("slowly")) as (url, _), Embedder(url) as client:
        embed_issues(store, REPO, client)
    forget_issue(store, REPO, 2, keep_out=False)
    with store.reading() as session:
        rows = session.connection().execute(text("SELECT number FROM issue_vector")).scalars().all()
    assert sorted(rows) == [n for n in TITLES if n != 2]


def found(store: Store, question: str, embed: Callable[[str], TextVector | None] | None = None) -> list[int]:
    return [match.number for match in diagnose(store, question, repos=(REPO,), embed=embed).matches]


def test_of_issues_that_share_the_same_words_the_one_of_like_meaning_is_first(store: Store) -> None:
    question = "tokens come slowly"
    for word, number in (("adapters", 2), ("machines", 3)):
        with embeddings_server(like(word)) as (url, _), Embedder(url) as client:
            embed_issues(store, REPO, client)
            own = TextVector("vectors", as_bytes([1.0, 0.2]))
            assert found(store, question, lambda _, own=own: own)[0] == number
            other = TextVector("another model", own.vector)
            short = TextVector("vectors", b"\1")
            assert found(store, question, lambda _, vector=other: vector) == found(store, question)
            assert found(store, question, lambda _, vector=short: vector) == found(store, question)
        with store.unit_of_work() as session:
            session.connection().execute(text("DELETE FROM issue_vector"))


@pytest.fixture
def statements(store: Store) -> Iterator[list[str]]:
    noted: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        noted.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    yield noted
    event.remove(store.engine, "before_cursor_execute", note)


def test_without_a_server_no_vector_is_read(store: Store, statements: list[str]) -> None:
    assert found(store, "tokens come slowly")
    assert not [one for one in statements if "issue_vector" in one]


def test_a_log_is_never_sent(store: Store) -> None:
    asked: list[str] = []
    log = "ERROR 03-02 10:11:12 [core.py:866] ValueError: No available memory for the cache blocks.\n" * 3
    found(store, log, asked.append)  # type: ignore[arg-type]
    assert asked == []


def test_a_server_that_is_away_or_slow_costs_a_question_little_and_only_once() -> None:
    with Embedder(f"http://127.0.0.1:{free_port()}", attempts=1, deadline_s=0.3) as client:
        assert QuestionEmbedder(client)("why") is None

    def slow(texts: Sequence[str]) -> list[list[float]]:
        time.sleep(1.5)
        return [[1.0] for _ in texts]

    with embeddings_server(slow) as (url, sent), Embedder(url, attempts=1, deadline_s=0.2) as client:
        embed = QuestionEmbedder(client)
        began = time.monotonic()
        assert embed("why") is None
        assert embed("why") is None
        assert time.monotonic() - began < 1.2
        assert len(sent) == 1


def test_the_command_makes_vectors_and_status_counts_them(tmp_path: Path, store: Store) -> None:
    with embeddings_server(like("slowly")) as (url, _):
        settings = {
            "TRIAGE_DATABASE_URL": str(store.engine.url),
            "TRIAGE_REPO": REPO,
            "TRIAGE_EMBEDDINGS_URL": url,
        }
        answer = triage("read", folder=tmp_path, **settings)
        assert f"vectors made vectors of {len(TITLES)} issues".encode() in answer.stderr
        status = json.loads(triage("status", folder=tmp_path, **settings).stdout)
    assert status["vectors"] == {REPO: {"vectors": len(TITLES)}}
    assert triage("read", folder=tmp_path, **settings).returncode == 1


def test_the_process_beside_a_server_makes_vectors(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with embeddings_server(like("slowly")) as (url, sent):
        settings = Settings(repo=(REPO,), embeddings_url=url, _env_file=None)  # type: ignore[call-arg]
        reading_round(settings, store)
        reading_round(settings, store)
    assert len(sent) == len(TITLES)
    assert f"made vectors of {len(TITLES)} issues" in capsys.readouterr().err
    reading_round(settings, store)
    assert "waits for the next round: the embeddings server does not answer" in capsys.readouterr().err
