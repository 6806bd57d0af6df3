"""An example of every parameter, request and answer, for the API description. All texts are our own.

The files in `examples/`: `parameters.json` (a value of each parameter that means something for the stored
issues), `requests.json` (bodies by operation id), `answers/<Schema>.json` (an object of the schema of that
name; a test checks each against its schema) and `log.txt` (after the failure of vllm-project/vllm#39288).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from app.extract.facts import Facts
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.digest.digest import digest_markdown
from app.knowledge.digest.shapes import Digest
from app.knowledge.issue.markdown import issue_markdown, report_markdown
from app.knowledge.issue.shapes import IssueAnswer, Report

_FOLDER = Path(__file__).parent / "examples"

EXAMPLE_LOG = (_FOLDER / "log.txt").read_text(encoding="utf-8")
"""The log behind "Try an example"."""


@cache
def parameter_examples() -> dict[str, Any]:
    """A value of each parameter, by its name in lower case; `cursor` has none that stays true."""
    found: dict[str, Any] = json.loads((_FOLDER / "parameters.json").read_text(encoding="utf-8"))
    return found


@cache
def request_examples() -> dict[str, dict[str, Any]]:
    """Bodies by operation id and media type."""
    bodies = json.loads((_FOLDER / "requests.json").read_text(encoding="utf-8"))
    found = {name: {"application/json": body} for name, body in bodies.items()}
    with_log = {"log": EXAMPLE_LOG, **bodies["diagnose"]}
    return {**found, "diagnose": {"application/json": with_log, "text/plain": EXAMPLE_LOG}}


@cache
def answer_examples() -> dict[str, Any]:
    """The example of each schema that has one, by the schema's name."""
    paths = sorted((_FOLDER / "answers").glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def markdown_example(schema: str) -> str:
    """The Markdown twin of a schema's example."""
    example = answer_examples()[schema]
    if schema == "Diagnosis":
        return diagnosis_markdown(Diagnosis.model_validate(example))
    if schema == "Digest":
        return digest_markdown(Digest.model_validate(example))
    if schema == "Report":
        return report_markdown(Report.model_validate(example))
    facts = {name: example[name] for name in Facts.model_fields} | {"fix": None}
    issue = {name: example[name] for name in IssueAnswer.model_fields if name in example}
    return issue_markdown(IssueAnswer.model_validate({**issue, "facts": facts}))
