"""Whether an issue reports a failure, and of what kind.

In: a `Document` and the root error that the log reader found. Out: `is_failure`, the kind and the words
that decide it. The title's tag and the error decide first, then what the title says, then the text.
"""

from __future__ import annotations

from typing import cast

from app.extract.document import Document
from app.extract.evidence import cite
from app.extract.facts import Evidence, FailureKind
from app.extract.narrative import is_request, read_sentences
from app.extract.rules import Rule, load_rules

_CONFIDENCE = {"title": 0.9, "error": 0.9, "label": 0.7, "text": 0.6}


def find_failure(
    document: Document, error_type: str | None, error_message: str
) -> tuple[bool, FailureKind, Evidence | None]:
    """What kind of failure the issue reports.

    Args:
        document: the issue.
        error_type: class of the root error, None if there is none or only a message.
        error_message: its one line, "" if there is none.

    Returns:
        Whether something fails, the kind ("none" if nothing does), and the quote that says so.
    """
    title = document.issue.title
    whole = ("title", 0, len(title))
    if is_request(document):
        return False, "none", _cite(document, "none", whole, "kind.title_request")
    error = f"{error_type}: {error_message}" if error_type else error_message
    for step in ("title_first", "error", "title"):
        text = error if step == "error" else title
        if text and (found := _match(step, text)):
            rule, start, end = found
            span = whole if step == "error" else ("title", start, end)
            if step == "error":
                span = _place_of(document, error_message or error_type or "") or whole
            return True, _kind(rule), _cite(document, rule["kind"], span, rule.id)
    if error:
        span = _place_of(document, error_message or error_type or "") or whole
        return True, "exception", _cite(document, "exception", span, "kind.has_error")
    return _from_words(document)


def _from_words(document: Document) -> tuple[bool, FailureKind, Evidence | None]:
    """No error was read: labels, then what the text says."""
    whole = ("title", 0, len(document.issue.title))
    labels = {label.lower() for label in document.issue.labels}
    if labels & {"feature request", "rfc", "new-model", "documentation", "new model"}:
        return False, "none", _cite(document, "none", whole, "kind.label_request")
    is_bug = document.issue.title.lower().startswith(("[bug", "[ci", "[install")) or "bug" in labels
    for sentence in read_sentences(document):
        if sentence.is_proposal or sentence.is_heading or sentence.source == "title":
            continue
        if found := _match("text", sentence.text):
            rule, start, end = found
            return True, _kind(rule), _cite(document, rule["kind"], sentence.span(start, end), rule.id)
    if is_bug:
        return True, "other", _cite(document, "other", whole, "kind.title_bug")
    if "performance" in labels and not document.issue.title.rstrip().endswith(("?", "？")):
        return True, "slowdown", _cite(document, "slowdown", whole, "kind.label_performance")
    return False, "none", None


def _match(step: str, text: str) -> tuple[Rule, int, int] | None:
    """The first rule of a step that the text meets, and where."""
    low = text.lower()
    for rule in load_rules("kind"):
        if step not in rule["steps"] or not any(word in low for word in rule["words"]):
            continue
        if match := rule.pattern.search(text):
            return rule, match.start(), match.end()
    return None


def _kind(rule: Rule) -> FailureKind:
    return cast("FailureKind", rule["kind"])


def _place_of(document: Document, words: str) -> tuple[str, int, int] | None:
    """Where the error's message stands."""
    if not words:
        return None
    for source, text in document.sources.items():
        at = text.find(words)
        if at >= 0:
            return source, at, at + len(words)
    return None


def _cite(document: Document, kind: str, span: tuple[str, int, int], rule: str) -> Evidence:
    step = (
        "title" if "title" in rule else "error" if "error" in rule else "label" if "label" in rule else "text"
    )
    return cite(document, "failure_kind", kind, span, rule, _CONFIDENCE[step])
