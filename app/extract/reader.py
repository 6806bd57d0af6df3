"""The reading room's two doors: `read_issue` and `read_log`. The same rules serve both.

In: an issue's texts, or a pasted log. Out: `IssueReading` or `LogReading`; the errors in them keep
their frames, which the catalogue needs and `Facts` does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from app.extract.backends import find_backends
from app.extract.cause import find_causes, find_reproductions
from app.extract.commands import read_settings
from app.extract.document import Document, IssueText, Line
from app.extract.environment import environment_facts, read_environment
from app.extract.evidence import cite
from app.extract.facts import ErrorFact, Evidence, Facts, Signature
from app.extract.fix_said import find_fix
from app.extract.gpus import count_gpus, find_gpus
from app.extract.kind import find_failure
from app.extract.loglines import LogLine, read_lines
from app.extract.models import find_models
from app.extract.regression import find_regression
from app.extract.related import find_related
from app.extract.rootcause import CauseChain, find_cause, read_errors
from app.extract.sections import read_document, read_log_document
from app.extract.signature import make_signature
from app.extract.summary import summarise
from app.extract.tracebacks import find_errors, title_error
from app.extract.versions import find_versions
from app.extract.workarounds import find_workarounds

RULES_VERSION = "2026-11-21"
"""Changes with every change of a rule; a stored reading of another version is read again."""

MAX_ISSUE_CHARS = 400_000
"""What is read of a body or comment; GitHub's own limit is 65,536, imported files know none."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a failure happened, as far as the text tells."""

    gpus: tuple[str, ...]
    gpu_count: int | None
    models: tuple[str, ...]
    backends: dict[str, tuple[str, ...]]
    versions: dict[str, str]
    environment: dict[str, str]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class LogReading:
    """What a pasted log says; `lines` are those of the log, unwrapped."""

    log: str
    errors: CauseChain
    surroundings: Surroundings
    signatures: tuple[Signature, ...]
    lines: tuple[LogLine, ...]


@dataclass(frozen=True, slots=True)
class IssueReading:
    """An issue's facts, and the errors they were made from."""

    facts: Facts
    errors: CauseChain
    document: Document


def read_log(log: str) -> LogReading:
    """Read a pasted log."""
    lines, errors = read_errors(log)
    surroundings = _surroundings(read_log_document(log))
    return LogReading(log, errors, surroundings, _signatures(errors), lines)


def read_issue(issue: IssueText) -> IssueReading:
    """Read all fields of an issue, each with its evidence."""
    document = read_document(issue)
    errors = _issue_errors(document)
    around = _surroundings(document)
    error, error_evidence = _error_fact(document, errors)
    is_failure, kind, kind_evidence = find_failure(
        document, error.type if error else None, error.message if error else ""
    )
    workarounds = find_workarounds(document)
    regression, regression_evidence = find_regression(document)
    related, elsewhere, related_evidence = find_related(document)
    causes = find_causes(document)
    reproductions = find_reproductions(document)
    fix, fix_evidence = find_fix(document)
    evidence = chain(
        error_evidence, around.evidence, [kind_evidence], (item for _, item in workarounds),
        regression_evidence, related_evidence, (item for _, item in causes),
        (item for _, item in reproductions), [fix_evidence],
    )  # fmt: skip
    facts = Facts(
        number=issue.number, is_failure=is_failure, failure_kind=kind, gpus=around.gpus,
        gpu_count=around.gpu_count, models=around.models, backends=around.backends,
        versions=around.versions, error=error if is_failure else None,
        workarounds=tuple(item for item, _ in workarounds), regression=regression, related=related,
        related_elsewhere=elsewhere, cause=tuple(item for item, _ in causes),
        reproduction=tuple(item for item, _ in reproductions), fix=fix, environment=around.environment,
        signatures=_signatures(errors) if is_failure else (),
        evidence=tuple(item for item in evidence if item is not None),
    )  # fmt: skip
    return IssueReading(facts.model_copy(update={"summary": summarise(facts)}), errors, document)


def _surroundings(document: Document) -> Surroundings:
    environment = read_environment(document)
    settings = read_settings(document)
    gpus = find_gpus(document, environment)
    count = count_gpus(document, environment, settings)
    models = find_models(document, settings)
    backends = find_backends(document, settings, environment)
    versions = find_versions(document, environment)
    return Surroundings(
        gpus=_values(gpus), gpu_count=int(count.value) if count else None, models=_values(models),
        backends=_by_key(backends), versions={key: v[0] for key, v in _by_key(versions).items()},
        environment=environment_facts(environment),
        evidence=tuple(chain(gpus, [count] if count else [], models, backends, versions)),
    )  # fmt: skip


def _values(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.value for item in evidence))


def _by_key(evidence: Iterable[Evidence]) -> dict[str, tuple[str, ...]]:
    """`{"attention": ("FLASH_ATTN",)}` from evidence of `backends.attention`."""
    found: dict[str, dict[str, None]] = {}
    for item in evidence:
        found.setdefault(item.field.partition(".")[2], {})[item.value] = None
    return {key: tuple(values) for key, values in found.items()}


def _issue_errors(document: Document) -> CauseChain:
    """The errors of the body; where it has none, of the title, then of the comments."""
    lines = list(read_lines(_lines_of(document, "body")))
    found = find_errors(lines)
    if found:
        return find_cause(found, lines)
    title = title_error(document.issue.title)
    if title is not None:
        return find_cause([title], lines)
    for source in document.sources:
        if source.startswith("comment:"):
            lines = list(read_lines(_lines_of(document, source)))
            if found := find_errors(lines):
                return find_cause(found, lines)
    return CauseChain(None)


def _lines_of(document: Document, source: str) -> Iterator[Line]:
    for block in document.of_source(source):
        if block.start < MAX_ISSUE_CHARS:
            yield from block.lines


def _signatures(errors: CauseChain) -> tuple[Signature, ...]:
    if errors.cause is None:
        return ()
    root = make_signature(errors.cause)
    others = [make_signature(item, "other") for item in errors.other]
    return tuple({item.id: item for item in [*reversed(others), root]}.values())[::-1]


def _error_fact(document: Document, errors: CauseChain) -> tuple[ErrorFact | None, list[Evidence]]:
    cause = errors.cause
    if cause is None:
        return None, []
    source = _source_of(document, cause.line)
    evidence = [_quote(document, "error.message", cause.message or (cause.type or ""), cause.line, source)]
    for text, line in errors.wrappers:
        evidence.append(_quote(document, "error.wrappers", text, line, _source_of(document, line)))
    evidence += [
        _quote(document, "error.other", item.message, item.line, _source_of(document, item.line))
        for item in errors.other
        if item.message
    ]
    error = ErrorFact(
        type=cause.type, message=cause.message, frame=cause.frame,
        wrappers=tuple(text for text, _ in errors.wrappers),
        other=tuple(item.message for item in errors.other if item.message),
    )  # fmt: skip
    return error, evidence


def _source_of(document: Document, line: LogLine) -> str:
    """Which source a line stands in: the one whose text holds it at its place."""
    for source, text in document.sources.items():
        if line.raw and text[line.start : line.end] == line.raw:
            return source
    return "body"


def _quote(document: Document, field: str, value: str, line: LogLine, source: str) -> Evidence:
    """The value's own words in its line; the whole line where colours or masks stand between them."""
    at = document.sources[source].find(value, line.start, line.end) if value else -1
    span = (source, at, at + len(value)) if at >= 0 else (source, line.start, line.end)
    return cite(document, field, value, span, "error.line", 0.9)

