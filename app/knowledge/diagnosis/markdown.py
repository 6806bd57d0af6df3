"""A diagnosis as Markdown, and as a comment on a newly opened issue.

The comment names the known issue it may duplicate and what the report lacks. No comment is made if no match
is likely or the report names that issue itself. Untrusted text is put in code or escaped.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from app.errors import InputError
from app.extract.facts import Facts
from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.markdown import render_markdown


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as Markdown with headings and a final line break."""
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
    """A newly reported failure: the log in the report, and the report's facts."""

    number: int
    repo: str
    log: str
    facts: Facts

    @property
    def vllm_version(self) -> str | None:
        """The failing version, as stated in the report."""
        return self.facts.versions.get("vllm")


def read_event(text: str) -> NewIssue | None:
    """Parse a GitHub event; None for a pull request, another action or an issue that reports no failure.

    Raises:
        InputError: not an issue event.
    """
    try:
        event = _Event.model_validate(json.loads(text))
    except (ValueError, RecursionError, ValidationError):
        raise InputError("This is no event on an issue: give the file of GITHUB_EVENT_PATH.") from None
    issue = event.issue
    if event.action != OPENED or issue.pull_request is not None:
        return None
    return new_issue(IssueText(issue.number, issue.title, issue.body or "", repo=event.repository.full_name))


def new_issue(issue: IssueText) -> NewIssue | None:
    """Return the failure that an issue reports; None if it reports none."""
    read = read_issue(issue)
    if not read.facts.is_failure:
        return None
    logs = [block.text for block in read.document.blocks if block.kind == "code" and block.source == "body"]
    log = "\n".join(logs) if logs else f"{issue.title}\n\n{issue.body}"
    return NewIssue(issue.number, issue.repo, log, read.facts)


def comment_markdown(issue: NewIssue, diagnosis: Diagnosis) -> str:
    """Return the comment; empty if there is nothing to say."""
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
    return render_markdown(
        "comment.md",
        issue=issue,
        diagnosis=diagnosis,
        matches=matches,
        remedies=[item for item in diagnosis.workarounds if item.outcome != "fails"][:REMEDIES_MAX],
        missing=missing_facts(issue.facts, around.versions, around.gpus, around.models),
    )


def missing_facts(
    facts: Facts,
    versions: Mapping[str, str] | None = None,
    gpus: Sequence[str] = (),
    models: Sequence[str] = (),
) -> list[str]:
    """Return what neither report nor log states, such as "the GPU"."""
    known = {
        "the vLLM version": facts.versions.get("vllm") or (versions or {}).get("vllm"),
        "the GPU": facts.gpus or gpus,
        "the model": facts.models or models,
    }
    return [name for name, value in known.items() if not value]
