"""An example of every request and answer, for the API description. All texts are our own.

`examples/<Schema>.json` holds one object of the schema of that name; a test checks each against its
schema.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.extract.facts import Facts
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.digest.shapes import Digest
from app.knowledge.digest.tables import digest_markdown
from app.knowledge.issue.markdown import issue_markdown, report_markdown
from app.knowledge.issue.shapes import IssueAnswer, Report

EXAMPLE_LOG = """\
(APIServer pid=2101) INFO 04-20 09:12:03 [api_server.py:1351] vLLM API server version 0.19.0
(APIServer pid=2101) INFO 04-20 09:12:03 [utils.py:233] non-default args: \
{'model': 'Qwen/Qwen3-Next-80B-A3B-Instruct', 'dtype': 'bfloat16', 'tensor_parallel_size': 4}
(EngineCore pid=2210) INFO 04-20 09:12:31 [core.py:105] Initializing a V1 LLM engine (v0.19.0) \
on 4 x NVIDIA H100 80GB HBM3
(Worker_TP0 pid=2291) INFO 04-20 09:13:05 [unquantized.py:283] Using FlashInfer CUTLASS Unquantized MoE \
backend out of potential backends: ['FlashInfer TRTLLM', 'FlashInfer CUTLASS', 'TRITON', 'BATCHED_TRITON'].
(Worker_TP0 pid=2291) INFO 04-20 09:15:40 [custom_all_reduce.py:215] Registering 0 cuda graph addresses
Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  97%|#########7| 143/147 [00:41<00:01,  3.41it/s]
Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'
(EngineCore pid=2210) ERROR 04-20 09:15:44 [multiproc_executor.py:246] \
Worker proc VllmWorker-3 died unexpectedly, shutting down executor.
(EngineCore pid=2210) ERROR 04-20 09:15:44 [core.py:1099] EngineCore failed to start.
(APIServer pid=2101) RuntimeError: Engine core initialization failed. See root cause above. \
Failed core proc(s): {'EngineCore': 1}
"""
"""The log behind "Try an example", after the failure told in vllm-project/vllm#39288."""

PARAMETERS: dict[str, Any] = {
    "number": 39288,
    "owner": "vllm-project",
    "name": "vllm",
    "repo": "vllm-project/vllm",
    "version": "0.19.0",
    "vllm_version": "0.19.0",
    "limit": 10,
    "with": 30579,
    "max_chars": 4000,
    "gpu": "H100",
    "arch": "Hopper",
    "model": "Qwen3-Next-80B-A3B-Instruct",
    "backend": "FlashInfer CUTLASS",
    "exclude": [30579],
    "keep": False,
    "q": "illegal memory access during CUDA graph capture",
    "error_type": "CUDA error",
    "kind": "crash",
    "state": "open",
    "label": "bug",
    "has_workaround": True,
    "has_regression": True,
    "since": "2026-04-01",
    "sort": "newest",
    "facets": True,
    "closed": True,
    "ended": True,
    "id": 7,
    "signature_id": "s1-0123456789ab",
    "via": "s1-0123456789ab",
    "min_size": 2,
    "alive": True,
    "week": "2026-W15",
    "x-github-event": "issues",
    "x-github-delivery": "0c8e4a10-33f2-11f1-9c5b-2f6d1f0a7e11",
}
"""A value of each parameter that means something for the stored issues; `cursor` has none that stays true."""

REQUESTS: dict[str, dict[str, Any]] = {
    "diagnose": {
        "application/json": {"log": EXAMPLE_LOG, "vllm_version": "0.19.0", "gpu": "H100", "limit": 3},
        "text/plain": EXAMPLE_LOG,
    },
    "judge": {
        "application/json": {
            "a": 30579,
            "b": 39288,
            "verdict": "same",
            "note": "Both fail in the same kernel.",
        },
    },
    "take_delivery": {
        "application/json": {
            "action": "opened",
            "repository": {"full_name": "vllm-project/vllm"},
            "issue": {"number": 39288},
        },
    },
    "vote": {"application/json": {"signal": "works", "value": 1}},
    "vote_in_repo": {"application/json": {"signal": "blocking", "value": 1}},
}
"""Bodies by operation id and media type."""

DETAILS = {
    400: "The body is not valid JSON.",
    401: "Send the admin token: Authorization: Bearer TOKEN.",
    403: "Nobody may change this here: the operator sets TRIAGE_ADMIN_TOKEN.",
    404: "#1 is not stored.",
    413: "The log is over the limit of 10 MiB. Send its end, from the first error on.",
    415: "This content type is not read here. Send the log as application/json or text/plain.",
    422: "limit: Input should be less than or equal to 50.",
    429: "A client may ask 120 times in 60 seconds here. Try again in 21 seconds.",
    503: "The database cannot be used just now. Try again in a minute.",
}
"""What a problem of each status may say."""

_FOLDER = Path(__file__).parent / "examples"


@lru_cache(maxsize=1)
def objects() -> dict[str, Any]:
    """The example of each schema that has one, by the schema's name."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.json"))
    }


def markdown_of(schema: str) -> str:
    """The Markdown twin of a schema's example."""
    example = objects().get(schema, {})
    if schema == "Diagnosis":
        return diagnosis_markdown(Diagnosis.model_validate(example))
    if schema == "Digest":
        return digest_markdown(Digest.model_validate(example))
    if schema == "Report":
        return report_markdown(Report.model_validate(example))
    if schema == "IssueDocument":
        ours = {name: example[name] for name in Facts.model_fields}
        theirs = {name: example[name] for name in IssueAnswer.model_fields if name in example}
        return issue_markdown(IssueAnswer.model_validate({**theirs, "facts": {**ours, "fix": None}}))
    return "# An answer as Markdown\n"
