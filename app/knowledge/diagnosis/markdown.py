"""A diagnosis as Markdown, and as one comment on an issue that was just opened.

The comment names the known issue that it may be and what the report lacks. There is none unless a match is
likely, or where the report names that issue itself. Foreign text stands in code or is escaped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from app.errors import InputError
from app.extract.facts import Facts
from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.text.markdown import render_markdown


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """The answer as Markdown with headings; ends with a line end."""
    return render_markdown("diagnosis.md", diagnosis=diagnosis)


MATCHES_MAX = 3
REMEDIES_MAX = 4
OPENED = "opened"
SURE = frozenset({"same", "likely"})


class _Issue(BaseModel):
    number: int
    title: str
    body: str | None = None
    pull_request: dict[str, object] | None = None


class _Repository(BaseModel):
    full_name: str


class _Event(BaseModel):
    action: str = OPENED
    issue: _Issue
    repository: _Repository


@dataclass(frozen=True, slots=True)
class NewIssue:
    """A failure that somebody reports: the log in it, and the facts of the report."""

    number: int
    repo: str
    log: str
    facts: Facts

    @property
    def vllm_version(self) -> str | None:
        """The version that fails, as the report states it."""
        return self.facts.versions.get("vllm")


def read_event(text: str) -> NewIssue | None:
    """The reported failure; None for a pull request, another action, or an issue that reports no failure.

    Raises:
        InputError: not an event on an issue.
    """
    try:
        event = _Event.model_validate(json.loads(text))
    except (ValueError, RecursionError, ValidationError):
        raise InputError("This is no event on an issue: give the file of GITHUB_EVENT_PATH.") from None
    issue = event.issue
    if event.action != OPENED or issue.pull_request is not None:
        return None
    body = issue.body or ""
    read = read_issue(IssueText(issue.number, issue.title, body, repo=event.repository.full_name))
    if not read.facts.is_failure:
        return None
    logs = [block.text for block in read.document.blocks if block.kind == "code" and block.source == "body"]
    log = "\n".join(logs) if logs else f"{issue.title}\n\n{body}"
    return NewIssue(issue.number, event.repository.full_name, log, read.facts)


def comment_markdown(issue: NewIssue, diagnosis: Diagnosis) -> str:
    """The comment; empty where there is nothing to say."""
    matches = [match for match in diagnosis.matches if match.band in SURE][:MATCHES_MAX]
    named = {f"{issue.repo}#{number}" for number in (issue.number, *issue.facts.related)}
    named |= set(issue.facts.related_elsewhere)
    if (
        diagnosis.verdict not in SURE
        or not matches
        or named & {f"{match.repo}#{match.number}" for match in matches}
    ):
        return ""
    around = diagnosis.environment
    known = {
        "the vLLM version": issue.vllm_version or around.versions.get("vllm"),
        "the GPU": issue.facts.gpus or around.gpus,
        "the model": issue.facts.models or around.models,
    }
    return render_markdown(
        "comment.md",
        issue=issue,
        diagnosis=diagnosis,
        matches=matches,
        remedies=[item for item in diagnosis.workarounds if item.outcome != "fails"][:REMEDIES_MAX],
        missing=[name for name, value in known.items() if not value],
    )
