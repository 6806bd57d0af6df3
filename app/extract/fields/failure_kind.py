"""Whether an issue reports a failure, and its kind.

In: a `Document` and the root error that the log reader found. Out: `is_failure`, the kind and the quote
that decides it. The title's tag and the error are checked first, then the title's words, then the text.

Proposals and feature requests (an RFC, a roadmap, support for a new model) mention models, GPUs and
engines that nobody runs yet. Settings in the commands of a request count; plain mentions do not.
"""

from functools import lru_cache
from itertools import islice
from typing import cast

from app.extract.evidence import cite
from app.extract.facts import Evidence, FailureKind
from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set
from app.extract.text.blocks import windows
from app.extract.text.document import Document
from app.extract.text.sentences import is_request, read_sentences

_LIST, _PROPOSAL_LIST = load("kind"), load("proposal")
_QUESTIONS: tuple[str, ...] = tuple(_LIST["questions"])
_WEAK_IN_QUESTIONS = frozenset(["wrong_output", "slowdown"])
_WEAK_IN_TITLES = frozenset(
    ["title_exception", "title_wrong", "title_odd", "title_timeout", "title_performance", "title_slow"]
)
_CONFIDENCE = {"title": 0.9, "error": 0.9, "label": 0.7, "text": 0.6}
_CI_REPORTS = ("[ci fail", "[ci-fail", "[ci] fail", "[ci/fail")
_REPORTS = ("[bug", *_CI_REPORTS)
_SLOWER = pattern(_LIST["slower"]["title"], ignore_case=True)
_PLAN = pattern(_PROPOSAL_LIST["plan"]["title"], ignore_case=True)
_SPAM = pattern(_PROPOSAL_LIST["spam"]["title"], ignore_case=True)
_REQUEST = pattern(_PROPOSAL_LIST["wish"]["title"], ignore_case=True)
_REQUEST_FORM: str = _PROPOSAL_LIST["wish"]["form"]
_FAILED_RUN = pattern(_PROPOSAL_LIST["wish"]["unless"])
"""Found only in texts that show output of something that ran and failed."""
MAX_LOG_CHARS = 400_000
MAX_SENTENCES = 2_000


def find_failure(
    document: Document, error_type: str | None, error_message: str, *, is_printed: bool = False
) -> tuple[bool, FailureKind, Evidence | None]:
    """Return whether the issue reports a failure, and its kind.

    Args:
        error_type: class of the root error, None if there is none or only a message.
        error_message: its message in one line, "" if there is none.
        is_printed: whether a program printed the error; then even a request reports a failure.

    Returns:
        Whether something fails, the kind ("none" if nothing does), and the quote that supports it.
    """
    whole = ("title", 0, len(document.issue.title))
    error = f"{error_type}: {error_message}" if error_type else error_message
    if _SPAM.search(document.sources["title"]):
        return False, "none", _cite(document, "none", whole, "kind.title_spam")
    is_titled = error_type is not None and error_type in document.issue.title
    is_shown = is_titled or (is_printed and not is_proposal(document))
    if is_request(document) and not is_shown:
        return False, "none", _cite(document, "none", whole, "kind.title_request")
    place = _message_span(document, error_message or error_type or "") or whole
    for step in ("title_first", "build", "error", "title"):
        found = _match_step(document, step, error, place)
        if found is not None:
            rule, span = found
            return True, _kind(rule), _cite(document, rule["kind"], span, rule.id)
    if error:
        return True, "exception", _cite(document, "exception", place, "kind.has_error")
    return _from_labels_and_text(document)


def _match_step(
    document: Document, step: str, error: str, place: tuple[str, int, int]
) -> tuple[Rule, tuple[str, int, int]] | None:
    """Return the first matching rule of a step and the span it matched; None if none does."""
    if step == "build":
        return _build_failure(document)
    title = document.issue.title
    text = error if step == "error" else title
    if step == "title" and _is_of_ci(title):
        tag, mark, rest = title.partition("]")
        text = " " * len(tag + mark) + rest
    for rule in load_rule_set("kind", "steps", step).meeting(text):
        if any(word in title.lower() for word in rule.extra.get("unless", ())):
            continue
        if rule.id.removeprefix("kind.") in _WEAK_IN_TITLES and _is_question(title):
            continue
        if rule.id == "kind.title_installation" and not error and not _states_failure(document):
            continue
        match = rule.pattern.search(text)
        if match is not None:
            return rule, place if step == "error" else ("title", match.start(), match.end())
    return None


def _states_failure(document: Document) -> bool:
    """True if the author's words or a build's log mention a failure."""
    if _build_failure(document) is not None:
        return True
    rules = load_rule_set("kind", "steps", "text", "bug_text", "title", "stated")
    sentences = islice(read_sentences(document), MAX_SENTENCES)
    return any(not s.is_proposal and rules.meeting(s.text) for s in sentences)


def _is_of_ci(title: str) -> bool:
    """True if the title is of the CI's form, in which the words for failing tell no kind."""
    return title.lower().startswith(_CI_REPORTS)


def _is_question(title: str) -> bool:
    return title.rpartition("]")[2].lstrip(" :：").lower().startswith(_QUESTIONS)


def _build_failure(document: Document) -> tuple[Rule, tuple[str, int, int]] | None:
    """Return the rule and span of a failed build's output; None if there is none or a server ran."""
    body = document.sources["body"][:MAX_LOG_CHARS]
    met = load_rule_set("kind", "steps", "build", "running").meeting(body)
    if any("running" in rule["steps"] for rule in met):
        return None
    for rule in met:
        match = rule.pattern.search(body)
        if match is not None:
            return rule, ("body", match.start(), match.end())
    return None


def _from_labels_and_text(document: Document) -> tuple[bool, FailureKind, Evidence | None]:
    """Return what `find_failure` returns, for an issue without an error: from its labels, then its text."""
    title = document.issue.title
    whole = ("title", 0, len(title))
    labels = {label.lower() for label in document.issue.labels}
    is_report = title.lower().startswith(_REPORTS)
    is_bug = is_report or "bug" in labels
    is_question = _is_question(title) and not is_report
    steps = ["text", "bug_text"] if is_bug and not _is_of_ci(title) else ["text"]
    rules = load_rule_set("kind", "steps", *steps)
    for sentence in islice(read_sentences(document), MAX_SENTENCES):
        if sentence.is_proposal or sentence.is_heading or sentence.source == "title":
            continue
        for rule in rules.meeting(sentence.text):
            if is_question and rule["kind"] in _WEAK_IN_QUESTIONS:
                continue
            if match := rule.pattern.search(sentence.text):
                span = sentence.span(match.start(), match.end())
                return True, _kind(rule), _cite(document, rule["kind"], span, rule.id)
    if is_bug and not is_question:
        return True, "other", _cite(document, "other", whole, "kind.title_bug")
    for rule in () if is_question else load_rule_set("kind", "steps", "last").meeting(title):
        return True, _kind(rule), _cite(document, rule["kind"], whole, rule.id)
    if "performance" in labels and not _is_question(title) and _SLOWER.search(title):
        return True, "slowdown", _cite(document, "slowdown", whole, "kind.label_performance")
    return False, "none", None


def _kind(rule: Rule) -> FailureKind:
    return cast("FailureKind", rule["kind"])


def _message_span(document: Document, words: str) -> tuple[str, int, int] | None:
    """Return the span of the error's message; None if it is not found."""
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


def is_proposal(document: Document) -> bool:
    """True if the title says that the issue plans or tracks work."""
    return bool(_PLAN.search(document.sources["title"]))


def is_titled_request(document: Document) -> bool:
    """True if the title asks for something new, so that what it names is not in use."""
    return is_proposal(document) or bool(_REQUEST.search(document.sources["title"]))


@lru_cache(maxsize=2)
def is_feature_request(document: Document) -> bool:
    """True if the issue asks for or plans something new and shows no output of a failed run."""
    if is_proposal(document):
        return True
    is_form = any(block.heading.endswith(_REQUEST_FORM) for block in document.of_kind("heading"))
    if not is_form and not is_titled_request(document):
        return False
    return not any(_FAILED_RUN.search(text) for _, _, text in windows(document))
