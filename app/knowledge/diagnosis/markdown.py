"""A diagnosis as Markdown, as the draft of an issue, and as a comment on a newly opened issue.

The draft is vLLM's bug report form, filled in from the masked log of a failure that nobody has reported.

The comment names the known issue it may duplicate and what the report lacks. No comment is made if no match
is likely or the report names that issue itself. Untrusted text is put in code or escaped.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from app.errors import InputError
from app.extract.facts import Facts
from app.extract.fields.launch import Launch
from app.extract.reader import LogReading, read_issue
from app.extract.text.document import IssueText
from app.knowledge.diagnosis.excerpts import without_colours
from app.knowledge.diagnosis.explain import COMPARED_BACKENDS
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.labels import BACKENDS
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


FORM = "400-bug-report.yml"
FORM_REPO = "vllm-project/vllm"
MAX_TITLE_CHARS = 120
MAX_LINES = 60
MAX_LINE_CHARS = 400
MAX_RAW_CHARS = 10_000
"""Characters read of one line, including colour codes."""
MAX_QUESTION_CHARS = 2_000
TRACEBACK_REACH = 40
"""Lines above the error that are searched for the start of its traceback."""
BEFORE_LINES, AFTER_LINES, LAST_LINES = 6, 2, 20

_VERSIONS = {
    "torch": "PyTorch",
    "cuda": "CUDA",
    "driver": "GPU driver",
    "transformers": "Transformers",
    "python": "Python",
}
_WANTED = ("vLLM version", "GPU", "Model", "PyTorch", "GPU driver")
"""Fields listed as missing; the others rarely matter."""
_TRACEBACK = "Traceback (most recent call last)"


def issue_draft(reading: LogReading, masked_log: str, launch: Launch | None, answer: Diagnosis) -> str:
    """Return the issue's text, under the headings of vLLM's form."""
    around = reading.surroundings
    count = f" × {around.gpu_count}" if around.gpu_count and len(around.gpus) == 1 else ""
    known = {
        "vLLM version": around.versions.get("vllm", ""),
        "GPU": ", ".join(around.gpus) + (count if around.gpus else ""),
        "Model": ", ".join(around.models),
        **{label: around.versions.get(key, "") for key, label in _VERSIONS.items()},
        **{BACKENDS[key]: ", ".join(around.backends.get(key, ())) for key in COMPARED_BACKENDS},
        "Command": launch.line if launch and launch.source == "command" else "",
        "Command, rebuilt from the log": launch.line if launch and launch.source != "command" else "",
    }
    is_question = answer.is_question
    lines = masked_log.strip()[:MAX_QUESTION_CHARS].splitlines() if is_question else None
    return render_markdown(
        "issue_draft.md",
        answer=answer,
        known=known,
        missing=[name for name in _WANTED if not known[name]],
        lines=_error_lines(reading, masked_log) if lines is None else lines,
    )


def new_issue_address(repo: str, diagnosis: Diagnosis) -> str:
    """Return the URL of GitHub's new-issue form with the title; the draft is too long for a URL."""
    fields = {"template": FORM} if repo == FORM_REPO else {}
    if title := draft_title(diagnosis):
        fields["title"] = title
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    return f"https://github.com/{repo}/issues/new" + (f"?{query}" if query else "")


def draft_title(diagnosis: Diagnosis) -> str:
    """Return `[Bug]: ValueError: no available memory`; empty if the log names no error."""
    cause = diagnosis.root_cause
    words = diagnosis.wrappers[0] if diagnosis.wrappers else ""
    if cause is not None:
        is_named = not cause.type or cause.message.startswith(cause.type)
        words = cause.message if is_named else f"{cause.type}: {cause.message}"
    flat = " ".join(words.split())
    title = f"[Bug]: {flat}" if flat else ""
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1].rstrip() + "…"


def _error_lines(reading: LogReading, masked_log: str) -> list[str]:
    """Return the error's lines from the masked log, with its traceback and the first wrappers."""
    # Only some lines of a very long log are read, so look lines up by number, not by index.
    lines = {line.number: line for line in reading.lines}
    errors = reading.errors
    cause = errors.cause or errors.apparent
    numbers = {line.number for _, line in errors.wrappers[:3] if line.number in lines}
    if cause is None:
        numbers = numbers or {line.number for line in reading.lines[-LAST_LINES:]}
    else:
        hot = cause.line.number
        own = {at: line for at, line in lines.items() if line.process == cause.line.process}
        starts = (
            at
            for at in range(hot, hot - TRACEBACK_REACH, -1)
            if at in own and own[at].text.lstrip().startswith(_TRACEBACK)
        )
        numbers |= own.keys() & set(range(next(starts, hot - BEFORE_LINES), hot + AFTER_LINES + 1))
    found: list[str] = []
    last = 0
    for number in sorted(numbers)[-MAX_LINES:]:
        if found and number != last + 1:
            found.append("[…]")
        last, line = number, lines[number]
        text = masked_log[line.start : min(line.end, line.start + MAX_RAW_CHARS)]
        found.append(without_colours(text).rstrip()[:MAX_LINE_CHARS])
    while found and not found[-1]:
        found.pop()
    return found
