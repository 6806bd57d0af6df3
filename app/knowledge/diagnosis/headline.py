"""The one-line answer: what failed and why, then the matching issue, or that none is known."""

import re
from collections.abc import Sequence

from app.knowledge.diagnosis.failures import Program
from app.knowledge.diagnosis.shapes import OPEN, Band, Failure, Match, RunOutcome

MAX_CHARS = 240
JOINT = " – "
SENTENCE_SHARE = 0.6
MIN_VERDICT_CHARS = 90
"""Characters reserved for the verdict beside a long cause."""
MAX_NAMED_CHARS = 60
"""Shorter messages ("'weight'") are prefixed with their error type."""
PLAIN_TYPES = frozenset(
    {
        "AssertionError",
        "BadRequestError",
        "Exception",
        "OSError",
        "RuntimeError",
        "ValidationError",
        "ValueError",
        "value_error",
    }
)
FEW_ISSUES = 1000
"""A database with fewer issues is not yet synced; the starter set alone has 80."""
_NAMES: dict[Program, str] = {"server": "Server", "engine": "Engine", "program": "The program"}
_WORD = re.compile(r"[a-z]{4,}")
_KIND = re.compile(r"^([A-Z][a-z ]+) \([^()]*\):")
"""The name of a failure's kind, which gives way to a long message."""
_OTHER_TITLE = re.compile(r"[?？]|(?i:\b(?:how (?:to|do|can)|tests?|CI)\b|\btest_\w)")
"""The title of a question or of a test run, which says little of the failure in its text."""
_LONG_NAME = re.compile(r"(\S{50})\S{30,}(\S{15})")
"""A path or value so long that it would crowd out the rest of the message."""


def issue_name(repo: str, number: int, default_repo: str) -> str:
    """Return `#1`, or `owner/name#1` if the issue is not in the default repository."""
    return f"#{number}" if not default_repo or repo == default_repo else f"{repo}#{number}"


def describe_failure(
    program: Program, outcome: RunOutcome, failure: Failure | None, error_type: str | None, message: str
) -> str:
    """Return, uncut, `Server did not start (port in use): [Errno 98] Address already in use`."""
    if outcome == "refused":
        scene = "The request was refused"
    elif program == "client":
        scene = "The command failed"
    elif outcome == "not_started":
        scene = f"{_NAMES[program]} did not start"
    else:
        scene = f"{_NAMES['program' if program == 'program' else 'engine']} stopped"
    message = _named_message(error_type, message)
    known = set(_WORD.findall(message.lower()))
    if failure is not None and not set(_WORD.findall(failure.name.lower())) <= known:
        scene = f"{scene} ({failure.name})"
    return f"{scene}: {message}"


def describe_other(program: str, error_type: str | None, message: str) -> str:
    """Return, uncut, `This is the log of nginx, not of vLLM; its error: …`."""
    message = _named_message(error_type, message)
    return f"This is the log of {program}, not of vLLM" + (f"; its error: {message}" if message else "")


def _named_message(error_type: str | None, message: str) -> str:
    """Return a message on one line, behind its error type if it is short."""
    message = _LONG_NAME.sub(r"\1…\2", " ".join(message.split()))
    if error_type and (not message or (len(message) < MAX_NAMED_CHARS and error_type not in PLAIN_TYPES)):
        return f"{error_type}: {message}".rstrip(": ")
    return message


def headline(
    verdict: Band,
    matches: Sequence[Match],
    failure: str,
    *,
    is_question: bool = False,
    is_other: bool = False,
    repo: str = "",
    stored: int = FEW_ISSUES,
    reports: int = 0,
) -> str:
    """Return the failure, if known, and the verdict; issues of `repo` are named by number only.

    `is_other`: another program than vLLM printed the log.

    If no issue matches, the line also says that few or no issues are stored (`stored`), or how many reports
    share the error (`reports`).
    """
    known = _verdict(verdict, matches, failure, is_question=is_question, repo=repo)
    if reports and verdict == "unknown":
        known = f"A common error: {reports:,} reports share it; none is known to be this very failure."
        if reports == 1:
            known = "A known error: one report holds it, which is not known to be this very failure."
    if is_other and verdict == "unknown":
        known = "Give the log of the vLLM server, or of the program that runs it."
    elif not stored:
        known = "No issue is stored here yet: if triage up is filling this base, ask again in a minute."
    elif stored < FEW_ISSUES and verdict in OPEN:
        known = f"Only {stored} issues are stored here. {known}"
    if not failure:
        return cut_at_word(known, MAX_CHARS)
    room = MAX_CHARS - len(JOINT) - MIN_VERDICT_CHARS
    if len(failure) > room:
        failure = _KIND.sub(r"\1:", failure)
    failure = cut_at_word(failure, room)
    return f"{failure}{JOINT}{cut_at_word(known, MAX_CHARS - len(JOINT) - len(failure))}"


def cut_at_word(text: str, length: int) -> str:
    """Shorten a text: after a sentence if that keeps most of it, else at a word, with an ellipsis."""
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    if (end := cut.rfind(". ")) > length * SENTENCE_SHARE:
        return cut[: end + 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > length // 2 else cut).rstrip(" ,;:(") + "…"


def _verdict(verdict: Band, matches: Sequence[Match], failure: str, *, is_question: bool, repo: str) -> str:
    """Return which issue this is, or why none is known."""
    if not matches or verdict == "unknown":
        return _no_answer(has_failure=bool(failure), is_question=is_question)
    best = matches[0]
    name = issue_name(best.repo, best.number, repo)
    if verdict == "related":
        shared = best.why.shared[0].partition(": ")[0] if best.why.shared else "some of its words"
        if is_question:
            return f"By your words alone, closest is {name}, which shares {shared}. No log was read."
        return f"No known same failure; closest is {name}, which shares {shared}."
    title = _sentence(best.title)
    if is_question:
        return f"By your words, probably {name}: {title} No log was read."
    differs = f" It differs: {best.why.differs[0]}." if verdict == "likely" and best.why.differs else ""
    told = f": {title}" if _adds(title, failure) else "."
    return f"{'You hit' if verdict == 'same' else 'Probably'} {name}{told}{differs}"


def _adds(title: str, failure: str) -> bool:
    """True if a title says something of a failure beyond the words that describe it already."""
    words = set(_WORD.findall(title.lower()))
    new = words - set(_WORD.findall(failure.lower()))
    return not failure or (not _OTHER_TITLE.search(title) and len(new) * 2 > len(words))


def _no_answer(*, has_failure: bool, is_question: bool) -> str:
    if is_question:
        return (
            "No stored issue is known to answer this: the question's words are too few or too common, "
            "and there is no log to read."
        )
    if has_failure:
        return "No stored issue is known to be this failure."
    return "No stored issue is known to be this failure: the text holds no error line."


def _sentence(title: str) -> str:
    """Return a title without tags such as `[Bug]:`, as a sentence."""
    text = title.strip()
    while text.startswith("[") and "]" in text:
        text = text.split("]", 1)[1].lstrip(" :")
    return (text or title).rstrip(".") + "."
