"""A real vLLM on the CPU with random weights: it answers nonsense by the schema, of which nothing may be stored."""

from __future__ import annotations

import json
import os
import signal
from itertools import islice
from pathlib import Path

import pytest
from sqlalchemy import text

from app.errors import ReaderError
from app.knowledge.operations.model_reading import read_issues
from app.model_reader.client import ReaderClient
from app.store.records import Progress
from app.store.session import Store
from app.train.shared import read_rows
from ingest.importer import import_paths
from tests.loopback import free_port
from tests.real_vllm import models, serving, vllm
from tests.samples import REPO

ISSUES, PARALLEL, REPLY_TOKENS, TOKENS = 50, 16, 150, 40_000


__all__ = ["models", "vllm"]  # fixtures


class BriefReader(ReaderClient):
    reply_tokens_max = REPLY_TOKENS


@pytest.mark.long
def test_nonsense_by_the_schema_is_counted_and_stored_nowhere(
    vllm: Path, models: Path, sqlite_store: Store, shared: Path, tmp_path: Path
) -> None:
    rows = (row for row in read_rows([shared / "corpus/issues.jsonl.gz"]) if not row.get("x_truncated"))
    file = tmp_path / "issues.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in islice(rows, ISSUES)))
    import_paths(sqlite_store, [str(file)], REPO)
    model, port = models / "llama-long", free_port()
    with (
        serving(vllm, model, port, tokens=TOKENS) as server,
        BriefReader(f"http://127.0.0.1:{port}", parallel=PARALLEL, attempts=2) as client,
    ):

        def kill(step: Progress) -> None:
            if step.done >= ISSUES // 3 and server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)

        try:
            first = read_issues(sqlite_store, REPO, client, parallel=PARALLEL, report=kill).asked
        except ReaderError:
            first = 0
    with (
        serving(vllm, model, port, tokens=TOKENS),
        BriefReader(f"http://127.0.0.1:{port}", parallel=PARALLEL, attempts=2) as client,
    ):
        second = read_issues(sqlite_store, REPO, client, parallel=PARALLEL)
    assert first + second.asked == ISSUES
    assert first > 0
    with sqlite_store.reading() as session:
        query = (
            "SELECT count(*), count(DISTINCT number), sum(kept) FROM model_reply WHERE outcome <> 'failed'"
        )
        assert session.connection().execute(text(query)).one() == (ISSUES, ISSUES, 0)
        merged = "SELECT count(*) FROM fact WHERE rule LIKE 'model.%'"
        assert session.connection().execute(text(merged)).scalar() == 0
    assert second.outcomes.get("cut", 0) > 0
