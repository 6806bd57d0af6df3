"""Build the search query of a pasted log, divided into parts.

In: the reading of a log. Out: terms, each assigned to the most distinctive part it occurs in. Parts are
weighted separately and each is bounded, so that a long paste, start-up noise or the frames that every failing
server prints cannot drown out the root cause.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, get_args

from app.extract.log.lines import LOUD, LogLine, is_usual
from app.extract.log.messages import wrapper_rule
from app.extract.log.process_stream import ErrorRecord
from app.extract.log.signature import mask
from app.extract.reader import LogReading
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import load_rule_set
from app.match.search.terms import (
    ERROR,
    FRAME,
    HEADING,
    SIGNATURE,
    TEXT,
    error_terms,
    frame_terms,
    grams_of,
    line_texts,
    message_key,
    stems_of,
    words_of,
)

Part = Literal["cause", "error", "title", "signature", "chain", "frames", "near", "context"]
PARTS: tuple[Part, ...] = get_args(Part)
"""In order of precedence: a term belongs to the first part it occurs in. `cause`: words of the root cause's
message, matched anywhere in a text; `error`: the same, masked, matched in error lines; `title`: its stems,
matched in titles; `signature`: type and masked message as one term; `chain`: messages of the other errors;
`frames`; `near`: code and lines directly above the cause; `context`: other lines that a healthy server does
not print and, if the message is common, the wrappers around it, which name the phase."""

NEAR_LINES = 24
"""Lines above the cause that are `near`: the innermost eight frames of a traceback with their code."""
SHORT_LOG_LINES = 150
"""In a longer log only warnings and errors are `context`."""
CONTEXT_LINES = 200
_PLACEHOLDER = pattern(r"<\w+>")
_TRACEBACK_PREFIXES = ('File "', "Traceback (most", *map("".join, product("^~", repeat=3)))
"""Prefixes of traceback lines to skip; frames are a part of their own."""
_QUIET = frozenset({"INFO", "DEBUG"})
_NAME = pattern(
    r"""[`'"‘“]([^\s`'"‘’“”]{2,60})[`'"’”]|(?:^|\s)(--[a-z][\w-]+)|: ([A-Za-z_][\w.-]{1,40})\.?$"""
    r"|^(?:Value error, )?([a-z]\w*) must be\b"
)
"""A word in quotes, an option, the last word after a colon, or the subject of "… must be"."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The search query of a log: the part of each (channel, term).

    Attributes:
        is_common: the message is empty or shared by unrelated failures.
        is_empty: there is no message.
        names: words that name the message's subject (quoted, options); similar messages differ in them.
        is_named: only the names identify the failure; the other words come from the language.
        is_refused: the server rejected a request but did not fail; the request itself may be wrong.
    """

    parts: Mapping[tuple[int, str], Part]
    is_common: bool
    is_empty: bool = False
    names: frozenset[str] = frozenset()
    is_named: bool = False
    is_refused: bool = False


def make_log_query(reading: LogReading) -> LogQuery:
    """Build the query of a log."""
    errors = reading.errors
    cause = errors.cause or errors.apparent
    message = cause.message if cause is not None else ""
    words, wrong = wrong_names(message)
    names_option = any(name.startswith("--") for name in wrong)
    is_shared = bool(load_rule_set("common_errors").meeting(message)) and not names_option
    is_common = not message or is_shared
    found: dict[tuple[int, str], Part] = {}
    for part, channel, terms in _terms(reading, cause, is_common=is_common):
        for term in terms:
            found.setdefault((channel, term), part)
    is_refused = errors.outcome == "refused"
    return LogQuery(found, is_common, not message, frozenset(name_words(message)), bool(words), is_refused)


def _terms(
    reading: LogReading, cause: ErrorRecord | None, *, is_common: bool
) -> Iterator[tuple[Part, int, Iterable[str]]]:
    errors = reading.errors
    if cause is not None:
        yield "cause", TEXT, own_words(cause.message)
        yield "error", ERROR, error_terms(cause)
        yield "title", HEADING, stems_of(f"{cause.type or ''}: {cause.message}")
        yield "signature", SIGNATURE, [message_key(cause)]
        yield "frames", FRAME, frame_terms(cause)
    for item in (*errors.chain, *errors.other):
        yield "chain", ERROR, error_terms(item)
        yield "chain", SIGNATURE, [message_key(item)]
        yield "frames", FRAME, frame_terms(item)
    wrapping = {line.number for _, line in errors.wrappers}
    near, around = _lines(
        [line for line in reading.lines if line.number not in wrapping],
        cause,
        with_file_lines=errors.cause is None,
    )
    yield "near", TEXT, grams_of(line_texts(near))
    yield "context", TEXT, grams_of(line_texts(around))
    if cause is not None and is_common:
        yield "context", TEXT, grams_of(text for text, _ in errors.wrappers)


def wrong_names(message: str) -> tuple[str, list[str]]:
    """Return the fixed words and the names of a message that matches a `named_errors` rule, else nothing."""
    rule = next(iter(load_rule_set("named_errors").meeting(message)), None)
    if rule is None:
        return "", []
    words = rule.pattern.search(message)
    return words.group(), [name.rstrip(".") for name in pattern(rule["name"]).findall(message[words.end() :])]


@lru_cache(maxsize=256)
def names_in(message: str) -> frozenset[str]:
    """Return the names a message is about: words in quotes, options, the last word after a colon."""
    text = _without_variables(message)
    found = ["".join(name.groups(default="")).rstrip(".") for name in _NAME.finditer(text)]
    return frozenset(name.lower() for name in [*found, *wrong_names(text)[1]])


def name_words(message: str) -> list[str]:
    """Return the index words of these names."""
    return words_of(" ".join(sorted(names_in(message))))


def own_words(message: str) -> Iterator[str]:
    """Return unigrams and bigrams of a message without machine-specific words."""
    kept = set(words_of(_without_variables(message)))
    return (gram for gram in grams_of([message]) if kept.issuperset(gram.split()))


def _without_variables(message: str) -> str:
    """Remove paths, hosts, ids and numbers from a message."""
    return str(_PLACEHOLDER.sub(" ", mask(message)))


def has_words(line: str) -> bool:
    """True unless a line is blank or traceback formatting."""
    text = line.lstrip()
    return bool(text) and not text.startswith(_TRACEBACK_PREFIXES)


def _lines(
    lines: Sequence[LogLine], cause: ErrorRecord | None, *, with_file_lines: bool
) -> tuple[Sequence[LogLine], Sequence[LogLine]]:
    """Return the lines directly above the cause, and the other lines worth searching for.

    Args:
        with_file_lines: keep `File` lines; they say most if the log contains only wrappers.
    """
    kept = [line for line in lines if (with_file_lines or has_words(line.text)) and not is_usual(line)]
    at = cause.line.number if cause is not None else 0
    near = [line for line in kept if at - NEAR_LINES <= line.number <= at and line.level not in _QUIET]
    rest = [line for line in kept if not at - NEAR_LINES <= line.number <= at]
    if len(lines) > SHORT_LOG_LINES:
        rest = [line for line in rest if line.level in LOUD and not line.text.startswith(" ")]
        rest = [line for line in rest if wrapper_rule(line.text) is None]
    else:
        rest = [line for line in rest if line.level not in _QUIET]
    return near, rest[:CONTEXT_LINES]
