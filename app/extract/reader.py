"""The entry points of this package, `read_issue` and `read_log`, which share all rules.

In: an issue's texts, or a pasted log. Out: `IssueReading` or `LogReading`, whose errors include the frames
that `app.match` needs and `Facts` does not contain.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from app.extract.evidence import cite, with_confidence
from app.extract.facts import ErrorFact, Evidence, Facts, Signature, summarise
from app.extract.fields.backends import find_backends
from app.extract.fields.environment import environment_facts, read_environment
from app.extract.fields.failure_kind import find_failure
from app.extract.fields.gpu_count import count_gpus
from app.extract.fields.gpus import find_gpus
from app.extract.fields.models import find_models
from app.extract.fields.settings import read_settings
from app.extract.fields.versions import find_versions
from app.extract.log.containers import plain_log
from app.extract.log.course import DEATH, REFUSED, Outcome
from app.extract.log.lines import LOUD, LogLine, read_lines
from app.extract.log.messages import ONLY_WRAPPER, borrow_message, resolve_missing_operator, wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.log.programs import UNDECIDED, Printer, find_printer
from app.extract.log.root_cause import (
    ERROR_LINE,
    WEAK_HINT,
    CauseChain,
    find_cause,
    read_errors,
    title_first,
)
from app.extract.log.signature import make_signature
from app.extract.log.tracebacks import find_errors, may_hold_errors, title_error
from app.extract.prose.mentions import find_fix, find_related
from app.extract.prose.regression import find_regression, without_earlier_fix
from app.extract.prose.stated_causes import find_causes, find_reproductions
from app.extract.prose.stated_error import WRAPPER, find_stated_error, find_stated_place
from app.extract.prose.titled_line import find_titled_line
from app.extract.prose.titled_message import find_titled_message
from app.extract.remedies.workarounds import find_repeats, find_workarounds
from app.extract.text.blocks import read_document, read_log_document
from app.extract.text.document import Document, IssueText, Line
from app.extract.versions import is_same, ordered

RULES_VERSION = "2026-11-28.13"
"""Changed with every rule change; stored readings of another version are read again."""

MAX_ISSUE_CHARS = 400_000
"""Maximum length read of a body or comment; GitHub's limit is 65,536, imported files have none."""


STATED = "said."
"""Prefix of the rule ids of errors that people tell in their own words."""
WITHOUT_MESSAGE = frozenset({"wrong_output", "slowdown", "none"})
"""Kinds whose titles describe what happens; what reads as a message there is none."""
UNSIGNED = (STATED, ONLY_WRAPPER, ERROR_LINE, DEATH, REFUSED)
"""Prefixes of rule ids whose causes get no signature: shared by unrelated failures, or not from a log."""
LIKELY = 0.5
"""Least probability of a title's message that counts more than a wrapper in the log."""
APPARENT_CONFIDENCE = 0.4
"""Confidence of an error message if only a wrapper is known."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """The facts and errors of a pasted log.

    Attributes:
        surroundings: accelerators, models, backends, versions and environment of the failure.
        lines: lines of the log without prefixes.
        printer: the program that printed it.
    """

    log: str
    errors: CauseChain
    surroundings: Facts
    signatures: tuple[Signature, ...]
    lines: tuple[LogLine, ...]
    outcome: Outcome = "stopped"
    printer: Printer = UNDECIDED


@dataclass(frozen=True, slots=True)
class IssueReading:
    """An issue's facts, and the errors they are based on."""

    facts: Facts
    errors: CauseChain
    document: Document


def read_log(log: str) -> LogReading:
    log = plain_log(log)
    lines, errors = read_errors(log)
    surroundings = _read_environment(read_log_document(log, ()))  # read from the whole text, not from lines
    errors = _adjust_to_outcome(errors)
    found, printer = _signatures(errors), find_printer(log, lines)
    return LogReading(log, errors, surroundings, found, lines, errors.outcome, printer)


def read_question(question: str) -> Facts:
    """Return the hardware, models and versions named in a question, which is read like an issue title."""
    return _read_environment(read_document(IssueText(0, question, "")))


def _adjust_to_outcome(errors: CauseChain) -> CauseChain:
    """Adjust the errors of a whole log: drop survived errors; make an apparent death or refusal the cause."""
    if errors.outcome == "none":
        return CauseChain(None)
    found = errors.apparent
    is_news = found is not None and (found.rule in {DEATH, REFUSED} or found.line.level in LOUD)
    if errors.cause is not None or found is None or found.rule == ONLY_WRAPPER or not is_news:
        return errors
    wrappers = tuple(item for item in errors.wrappers if item[1] is not found.line)
    return replace(errors, cause=found, wrappers=wrappers, apparent=None)


def read_issue(issue: IssueText) -> IssueReading:
    """Read all fields of an issue, each with its evidence."""
    document = read_document(issue)
    errors = _issue_errors(document)
    around = _read_environment(document)
    error, error_evidence = _error_fact(document, errors)
    # A wrapper in the reporter's words says less of the kind than the words around it.
    telling = None if errors.apparent is not None and errors.apparent.rule == WRAPPER else error
    is_failure, kind, kind_evidence = find_failure(
        document,
        telling.type if telling else None,
        telling.message if telling else "",
        is_printed=errors.cause is not None and is_printed(errors.cause),
    )
    if errors.cause is None and kind not in WITHOUT_MESSAGE:
        named = find_titled_message(document, LIKELY if errors.apparent else 0.0)
        if named is not None:
            errors = replace(errors, cause=_with_frame(document, errors, named))
            error, error_evidence = _error_fact(document, errors)
    workarounds = find_workarounds(document)
    regression, regression_evidence = find_regression(document)
    for well in (regression.last_working, regression.fixed_in) if regression else ():
        if is_same(around.versions.get("vllm"), well):
            around = _read_environment(document, worked=well)
    regression, regression_evidence = without_earlier_fix(
        regression, regression_evidence, around.versions.get("vllm")
    )
    around = _with_first_failing(around, regression_evidence)
    related, elsewhere, related_evidence = find_related(document)
    causes = find_causes(document)
    reproductions = find_reproductions(document)
    fix, fix_evidence = find_fix(document)
    evidence = chain(
        error_evidence,
        around.evidence,
        [kind_evidence],
        (item for _, item in workarounds),
        find_repeats(document),
        regression_evidence,
        related_evidence,
        (item for _, item in causes),
        (item for _, item in reproductions),
        [fix_evidence],
    )
    facts = around.model_copy(
        update={
            "number": issue.number,
            "is_failure": is_failure,
            "failure_kind": kind,
            "error": error if is_failure else None,
            "workarounds": tuple(item for item, _ in workarounds),
            "regression": regression,
            "related": related,
            "related_elsewhere": elsewhere,
            "cause": tuple(item for item, _ in causes),
            "reproduction": tuple(item for item, _ in reproductions),
            "fix": fix,
            "signatures": _signatures(errors) if is_failure else (),
            "evidence": tuple(with_confidence(item) for item in evidence if item is not None),
        }
    )
    return IssueReading(facts.model_copy(update={"summary": summarise(facts)}), errors, document)


def is_printed(cause: ErrorRecord) -> bool:
    """True if the text has the error as a program prints it, not only a person's words for it."""
    return not cause.rule.startswith((STATED, "title."))


def _read_environment(document: Document, worked: str | None = None) -> Facts:
    """Read only the environment of a failure into `Facts`; `worked`: a version of vLLM that does not fail."""
    environment = read_environment(document)
    settings = read_settings(document)
    gpus = find_gpus(document, environment)
    count = count_gpus(document, environment, settings)
    models = find_models(document, settings)
    backends = find_backends(document, settings, environment)
    versions = find_versions(document, environment, worked)
    return Facts(
        number=0,
        gpus=_values(gpus),
        gpu_count=int(count.value) if count else None,
        models=_values(models),
        backends=_by_key(backends),
        versions={key: v[0] for key, v in _by_key(versions).items()},
        environment=environment_facts(environment),
        evidence=tuple(chain(gpus, [count] if count else [], models, backends, versions)),
    )


def _with_first_failing(around: Facts, evidence: Iterable[Evidence]) -> Facts:
    """Return the environment with the first failing version of vLLM, if it names none."""
    first = next((item for item in evidence if item.field == "regression.first_failing"), None)
    if "vllm" in around.versions or first is None or ordered(first.value) is None:
        return around
    versions = {**around.versions, "vllm": first.value}
    stated = first.model_copy(update={"field": "versions.vllm"})
    return around.model_copy(update={"versions": versions, "evidence": (*around.evidence, stated)})


def _values(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.value for item in evidence))


def _by_key(evidence: Iterable[Evidence]) -> dict[str, tuple[str, ...]]:
    """`{"attention": ("FLASH_ATTN",)}` from evidence of `backends.attention`."""
    found: dict[str, dict[str, None]] = {}
    for item in evidence:
        found.setdefault(item.field.partition(".")[2], {})[item.value] = None
    return {key: tuple(values) for key, values in found.items()}


def _issue_errors(document: Document) -> CauseChain:
    """Return the errors of the body's logs, else of the title, of the prose, or of the comments.

    If none of them names one, the log's outermost error is `apparent`.
    """
    logged = title_first(_logged_errors(document, "body"), document.issue.title)
    if logged.cause is not None and logged.cause.weak < WEAK_HINT:
        cause = logged.cause
        if not cause.message and (titled := _titled_error(document)):
            cause = borrow_message([cause, titled])[0]
        return replace(logged, cause=_with_frame(document, logged, cause))
    named = _titled_error(document) or logged.cause
    if named is not None:
        return replace(logged, cause=_with_frame(document, logged, named))
    stated = find_stated_error(document)
    named = _unless_wrapper(stated)
    for source in document.sources:
        if source.startswith("comment:"):
            commented = _logged_errors(document, source)
            if commented.cause is not None and (named is None or named.type == commented.cause.type):
                return commented
    apparent = logged.apparent
    if named is None and apparent is None:
        named = find_titled_line(document) or _unless_wrapper(find_stated_error(document, comments=True))
    if named is not None:
        return replace(logged, cause=_with_frame(document, logged, named))
    apparent = apparent or stated
    return replace(logged, apparent=apparent and replace(apparent, frame=apparent.frame or logged.place))


def _titled_error(document: Document) -> ErrorRecord | None:
    """Return the error that the title names, or what the body's log shows to be behind it."""
    title = title_error(document.issue.title)
    titled = find_cause([title], ()).cause if title is not None else None
    lines = read_lines(_lines_of(document, "body"))
    return resolve_missing_operator([titled], lines)[0] if titled is not None else None


def _unless_wrapper(stated: ErrorRecord | None) -> ErrorRecord | None:
    return stated if stated is not None and stated.rule != WRAPPER else None


def _with_frame(document: Document, logged: CauseChain, cause: ErrorRecord) -> ErrorRecord:
    """Set the cause's frame: its own, else that of a truncated traceback, else the one named in prose."""
    place = cause.frame or logged.place or find_stated_place(document, cause.type)
    return cause if place == cause.frame else replace(cause, frame=place)


def _logged_errors(document: Document, source: str) -> CauseChain:
    """Return the errors printed in a source's logs."""
    if not may_hold_errors(document.sources[source][:MAX_ISSUE_CHARS]):
        return CauseChain(None)
    lines = list(read_lines(_lines_of(document, source)))
    found = find_cause(find_errors(lines), lines)
    rule = wrapper_rule(f"{found.cause.type}: {found.cause.message}") if found.cause else None
    return replace(found, cause=None) if rule is not None and rule.extra.get("asked") else found


def _lines_of(document: Document, source: str) -> Iterator[Line]:
    for block in document.of_source(source):
        if block.start < MAX_ISSUE_CHARS:
            yield from block.lines


def _signatures(errors: CauseChain) -> tuple[Signature, ...]:
    """Return the signatures of the errors; none for causes of `UNSIGNED` rules."""
    if errors.cause is None or errors.cause.rule.startswith(UNSIGNED):
        return ()
    root = make_signature(errors.cause)
    others = [make_signature(item, "other") for item in errors.other]
    return tuple({item.id: item for item in [*reversed(others), root]}.values())[::-1]


def _error_fact(document: Document, errors: CauseChain) -> tuple[ErrorFact | None, list[Evidence]]:
    cause = errors.cause or errors.apparent
    if cause is None:
        return None, []
    message, source = cause.message, _source_of(document, cause.line)
    quote = _quote(document, "error.message", message or (cause.type or ""), cause.line, source)
    if errors.cause is None:
        quote = quote.model_copy(update={"rule": "error.apparent", "confidence": APPARENT_CONFIDENCE})
    evidence = [quote]
    wrappers = [item for item in errors.wrappers if item[1] is not cause.line and item[0] != cause.message]
    for text, line in wrappers:
        evidence.append(_quote(document, "error.wrappers", text, line, _source_of(document, line)))
    evidence += [
        _quote(document, "error.other", item.message, item.line, _source_of(document, item.line))
        for item in errors.other
        if item.message
    ]
    error = ErrorFact(
        type=cause.type,
        message=message,
        frame=cause.frame,
        wrappers=tuple(text for text, _ in wrappers),
        other=tuple(item.message for item in errors.other if item.message),
    )
    return error, evidence


def _source_of(document: Document, line: LogLine) -> str:
    """Return the source that contains a line at its position."""
    for source, text in document.sources.items():
        if line.raw and text[line.start : line.end] == line.raw:
            return source
    return "body"


def _quote(document: Document, field: str, value: str, line: LogLine, source: str) -> Evidence:
    """Cite a value in its line; cite the whole line if the value is interrupted by colours or masks."""
    start, end = (0, len(document.issue.title)) if source == "title" else (line.start, line.end)
    at = document.sources[source].find(value, start, end) if value else -1
    span = (source, at, at + len(value)) if at >= 0 else (source, start, end)
    return cite(document, field, value, span, "error.line", 0.9)
