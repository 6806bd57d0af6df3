"""What a pasted log asks the index, part by part.

In: the reading of a log. Out: terms, each in the most distinctive part that it stands in. The parts are kept
apart because they are worth differently much, and because each is bounded: the length of a paste, the noise
of its start and the frames that every failing server prints change nothing in what the cause is found by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
"""`cause`: words of the root message in a text; `error`: the same, masked, in an error line; `title`: its
stems in a title; `signature`: type and masked message as one; `chain`: messages of the errors around it;
`frames`; `near`: words of the code and lines right above the cause; `context`: the other lines that no
healthy server prints, and around a message that unlike faults share what it was wrapped in, which names the
phase. A term belongs to the first part that it stands in."""

NEAR_LINES = 24
"""Lines above a cause: the innermost eight frames of a traceback with their code."""
SHORT_LOG_LINES = 150
"""Of a longer log only loud lines are context, and those around the cause."""
CONTEXT_LINES = 200
MIN_FAULT_WORDS = 4
_ADVICE = pattern(r"[,;.] (?:[Pp]lease|[Tt]ry|[Cc]onsider)\b")
_PLACEHOLDER = pattern(r"<\w+>")
_PLACES = ('File "', "Traceback (most", *map("".join, product("^~", repeat=3)))
"""How lines of a traceback begin that hold no words of their own; frames are a part by themselves."""
_QUIET = frozenset({"INFO", "DEBUG"})
_NAME = pattern(
    r"""[`'"‘“]([^\s`'"‘’“”]{2,60})[`'"’”]|(?:^|\s)(--[a-z][\w-]+)|: ([A-Za-z_][\w.-]{1,40})\.?$"""
)
"""A word in quotes, an option, or the last word behind a colon."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Terms by channel and text, each with its part.

    Attributes:
        is_common: the cause's message says little by itself: it is empty, or unlike faults share it.
        is_empty: there is no message at all.
        names: words by which the message says what it is about, where others say the same of something else.
        is_named: the names alone say what is wrong; the other words are the language's.
        is_refused: a request failed and no server. What it asked for may be the fault, whoever else met the
            words of the refusal.
    """

    parts: Mapping[tuple[int, str], Part]
    is_common: bool
    is_empty: bool = False
    names: frozenset[str] = frozenset()
    is_named: bool = False
    is_refused: bool = False


def ask_log(reading: LogReading) -> LogQuery:
    """The query that a log is."""
    errors = reading.errors
    cause = errors.cause or errors.apparent
    if cause is not None:
        cause = replace(cause, message=_without_advice(cause.message))
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
    chain = [*errors.chain, *errors.other]
    if cause is not None:
        yield "cause", TEXT, own_words(cause.message)
        yield "error", ERROR, error_terms(cause)
        yield "title", HEADING, stems_of(f"{cause.type or ''}: {cause.message}")
        yield "signature", SIGNATURE, [message_key(cause)]
        yield "frames", FRAME, _frames(cause, is_common=is_common)
    for item in chain:
        yield "chain", ERROR, error_terms(item)
        yield "chain", SIGNATURE, [message_key(item)]
        yield "frames", FRAME, _frames(item, is_common=is_common)
    outer = [] if cause is not None else [text for text, _ in errors.wrappers]
    yield "chain", TEXT, grams_of([item.message for item in chain] + outer)
    wrapping = {line.number for _, line in errors.wrappers}
    near, around = _lines(
        [line for line in reading.lines if line.number not in wrapping],
        cause,
        with_places=errors.cause is None,
    )
    yield "near", TEXT, grams_of(line_texts(near))
    yield "context", TEXT, grams_of(line_texts(around))
    if cause is not None and is_common:
        yield "context", TEXT, grams_of(text for text, _ in errors.wrappers)


def _without_advice(message: str) -> str:
    """The message up to the advice behind a comma, which a later version may have added."""
    fault, *advice = _ADVICE.split(message, maxsplit=1)
    return str(fault) if advice and len(fault.split()) >= MIN_FAULT_WORDS else message


def _frames(error: ErrorRecord, *, is_common: bool) -> Iterable[str]:
    """The frames of an error; of a message that unlike faults share without those of libraries."""
    if not is_common or not error.frames:
        return frame_terms(error)
    own = tuple(frame for frame in error.frames if not _is_library(frame.path))
    return frame_terms(replace(error, frames=own)) if own else ()


def _is_library(path: str) -> bool:
    """Whether code is an installed package's or Python's, other than vLLM's."""
    _, installed, package = path.rpartition("-packages/")
    return not package.startswith("vllm/") if installed else "/lib/python3" in path


def wrong_names(message: str) -> tuple[str, list[str]]:
    """The words of a message after which only a name says what is wrong, and these names; else nothing."""
    rule = next(iter(load_rule_set("named_errors").meeting(message)), None)
    if rule is None:
        return "", []
    words = rule.pattern.search(message)
    return words.group(), [name.rstrip(".") for name in pattern(rule["name"]).findall(message[words.end() :])]


@lru_cache(maxsize=256)
def names_in(message: str) -> frozenset[str]:
    """What a message says it is about: a name in quotes, an option, the last word behind a colon."""
    text = _without_places(message)
    found = ["".join(name.groups(default="")).rstrip(".") for name in _NAME.finditer(text)]
    return frozenset(name.lower() for name in [*found, *wrong_names(text)[1]])


def name_words(message: str) -> list[str]:
    """The words of these names, as the index holds them."""
    return words_of(" ".join(sorted(names_in(message))))


def own_words(message: str) -> Iterator[str]:
    """The words of a message without those that are one machine's."""
    kept = set(words_of(_without_places(message)))
    return (gram for gram in grams_of([message]) if kept.issuperset(gram.split()))


def _without_places(message: str) -> str:
    """A message without paths, hosts, ids and numbers."""
    return str(_PLACEHOLDER.sub(" ", mask(message)))


def has_words(line: str) -> bool:
    """Whether a line is neither blank nor one that only forms a traceback."""
    text = line.lstrip()
    return bool(text) and not text.startswith(_PLACES)


def _lines(
    lines: Sequence[LogLine], cause: ErrorRecord | None, *, with_places: bool
) -> tuple[Sequence[LogLine], Sequence[LogLine]]:
    """The lines right above the cause, and what else of the log is worth asking for.

    Args:
        with_places: also where code stands, which says the most where only wrappers are printed.
    """
    kept = [line for line in lines if (with_places or has_words(line.text)) and not is_usual(line)]
    at = cause.line.number if cause is not None else 0
    near = [line for line in kept if at - NEAR_LINES <= line.number <= at and line.level not in _QUIET]
    rest = [line for line in kept if not at - NEAR_LINES <= line.number <= at]
    if len(lines) > SHORT_LOG_LINES:
        rest = [line for line in rest if line.level in LOUD and not line.text.startswith(" ")]
        rest = [line for line in rest if wrapper_rule(line.text) is None]
    else:
        rest = [line for line in rest if line.level not in _QUIET]
    return near, rest[:CONTEXT_LINES]
