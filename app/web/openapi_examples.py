"""An example of every request and answer, for the API description. All texts are our own.

`examples/<Schema>.json` holds one object of the schema of that name; a test checks each against its schema.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.extract.facts import Facts
from app.knowledge.answers import Diagnosis, IssueAnswer
from app.knowledge.digest_markdown import digest_markdown
from app.knowledge.digest_shapes import Digest
from app.knowledge.issue_markdown import issue_markdown
from app.knowledge.markdown import diagnosis_markdown
from app.knowledge.report_markdown import report_markdown
from app.knowledge.report_shapes import Report
from app.web.example import EXAMPLE_LOG

PARAMETERS: dict[str, Any] = {
    "number": 39288, "owner": "vllm-project", "name": "vllm", "repo": "vllm-project/vllm",
    "version": "0.19.0", "vllm_version": "0.19.0", "limit": 10, "with": 30579, "max_chars": 4000,
    "gpu": "H100", "arch": "Hopper", "model": "Qwen3-Next-80B-A3B-Instruct",
    "backend": "FlashInfer CUTLASS",
    "exclude": [30579], "keep": False,
    "q": "illegal memory access during CUDA graph capture", "error_type": "CUDA error", "kind": "crash",
    "state": "open", "label": "bug", "has_workaround": True, "has_regression": True, "since": "2026-04-01",
    "sort": "newest", "facets": True, "closed": True, "ended": True, "id": 7,
    "signature_id": "s1-0123456789ab", "via": "s1-0123456789ab", "min_size": 2, "alive": True,
    "week": "2026-W15",
    "x-github-event": "issues", "x-github-delivery": "0c8e4a10-33f2-11f1-9c5b-2f6d1f0a7e11",
}  # fmt: skip
"""A value of each parameter that means something for the stored issues; `cursor` has none that stays true."""

REQUESTS: dict[str, dict[str, Any]] = {
    "diagnose": {
        "application/json": {"log": EXAMPLE_LOG, "vllm_version": "0.19.0", "gpu": "H100", "limit": 3},
        "text/plain": EXAMPLE_LOG,
    },
    "judge": {
        "application/json": {
            "a": 30579, "b": 39288, "verdict": "same", "note": "Both fail in the same kernel.",
        },
    },
    "take_delivery": {
        "application/json": {
            "action": "opened", "repository": {"full_name": "vllm-project/vllm"}, "issue": {"number": 39288},
        },
    },
    "vote": {"application/json": {"signal": "works", "value": 1}},
    "vote_in_repo": {"application/json": {"signal": "blocking", "value": 1}},
}  # fmt: skip
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
