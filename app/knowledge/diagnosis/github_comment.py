"""One comment on an issue that was just opened: which known issue it may be, and what its report lacks.

In: what GitHub sends to a workflow on `issues: opened`, and the diagnosis of the log in it. Out: Markdown, or
nothing: silence is right unless the match is likely, and where the report names the known issue itself.
The comment only informs; every word of others in it is in code or escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from app.errors import InputError
from app.extract.facts import Facts
from app.extract.reader import read_issue
from app.extract.text.document import IssueText
from app.knowledge.diagnosis.explain import issue_name
from app.knowledge.diagnosis.markdown import fix_words, remedy_line
from app.knowledge.diagnosis.shapes import Diagnosis, Match
from app.knowledge.labels import BANDS
from app.knowledge.text.quoting import code, escape, fenced

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
    """A failure that somebody reports: the log in it, and what the report tells of the run."""

    number: int
    repo: str
    log: str
    facts: Facts

    @property
    def vllm_version(self) -> str | None:
        """The version that fails, as the report tells it."""
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
    named = {(issue.repo, number) for number in (issue.number, *issue.facts.related)}
    told = {(match.repo, match.number) for match in matches}
    elsewhere = {f"{match.repo}#{match.number}" for match in matches} & set(issue.facts.related_elsewhere)
    if diagnosis.verdict not in SURE or not matches or told & named or elsewhere:
        return ""
    return "\n".join(_lines(issue, diagnosis, matches)).rstrip() + "\n"


def _lines(issue: NewIssue, diagnosis: Diagnosis, matches: list[Match]) -> Iterator[str]:
    is_same = diagnosis.verdict == "same"
    yield f"This {'looks like' if is_same else 'may be'} a known issue:"
    yield ""
    for match in matches:
        yield from _match(match, issue.repo)
    yield ""
    yield from _evidence(diagnosis, matches[0], issue.repo)
    remedies = [item for item in diagnosis.workarounds if item.outcome != "fails"][:REMEDIES_MAX]
    if remedies:
        told = [remedy_line(item, issue.repo) for item in remedies]
        yield from ("What is told to help there:", "", *told, "")
    missing = _missing(issue.facts, diagnosis)
    if missing:
        yield f"The report does not tell {_listed(missing)}; `vllm collect-env` prints what it can."
        yield ""
    index = diagnosis.index
    fresh = f", as of {index.as_of:%Y-%m-%d}" if index.as_of else ""
    yield (
        f"*Compared with {index.issues:,} stored issues{fresh}, by rules and without a person. Nothing was "
        "closed or labelled; if it is another failure, say so and leave this issue open.*"
    )


def _match(match: Match, repo: str) -> Iterator[str]:
    name = issue_name(match.repo, match.number, repo)
    yield (
        f"- **{BANDS[match.band]}**, {match.score:.0%}: [{name}]({match.url}) "
        f"{code(match.title)} ({match.state})"
    )
    if match.why.shared:
        yield f"  - shared: {escape('; '.join(match.why.shared))}"
    if match.why.differs:
        yield f"  - different: {escape('; '.join(match.why.differs))}"
    if match.fix and match.fix.state != "unknown":
        yield f"  - fix: {fix_words(match.fix)}"


def _evidence(diagnosis: Diagnosis, best: Match, repo: str) -> Iterator[str]:
    cause = diagnosis.root_cause
    if cause is None:
        return
    yield from ("The error in this report:", "", *fenced([cause.quote]), "")
    if best.excerpt:
        name = issue_name(best.repo, best.number, repo)
        yield from (f"And in {name}:", "", *fenced([line.text for line in best.excerpt]), "")


def _missing(facts: Facts, diagnosis: Diagnosis) -> list[str]:
    around = diagnosis.environment
    told = [
        ("the vLLM version", facts.versions.get("vllm") or around.versions.get("vllm")),
        ("the GPU", facts.gpus or around.gpus),
        ("the model", facts.models or around.models),
    ]
    return [name for name, value in told if not value]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
