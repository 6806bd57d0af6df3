"""Parser state of one process's lines: open traceback, exception chain, errors found so far.

In: frames and errors in the order of the lines. Out: `ErrorRecord`s, completed from the lines below them: a
message on the next line, the stack of a native fault, the last frame of a truncated traceback.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from app.extract.log.error_lines import MAX_MESSAGE_CHARS, terminal
from app.extract.log.frames import PYTHON, Frame
from app.extract.log.lines import LogLine
from app.extract.rules.patterns import pattern

Chain = Literal["", "caused_by", "during"]

ANSWER = "native.answer"
"""The rule id of a server's error response to a request."""
CUT = "traceback.cut"
"""The rule id of a record that only marks where a traceback was truncated."""
_PYDANTIC = pattern(
    r"^\s+(?:(?:Value error|Assertion failed), (\S.{2,}?)|(\S.{2,}?) \[type=\w.*"
    r"|\{'type': .*?'msg': (?:'([^']{3,})'|\"(?:Value error, )?([^\"]{3,})\").*)(?: \[type=\w.*)?$"
)
_INVALID = pattern(r"\d validation errors? for \S{1,80}$")
"""What pydantic prints above the reasons."""
_INVALID_LINE = pattern(
    r"^(\d+ validation errors? for \S{1,80}) (?:\S{1,80} )?(?:Value error|Assertion failed), "
    r"(\S.{2,}?)(?: \[type=\w.*)?$"
)
"""The same and the first reason, in a log that lost its line breaks."""
_REASON = "Value error, "
_ANNOUNCING = ("message:", "error:", "errors:", "traceback):", "reason:", "because:")
"""Endings of messages that only introduce the next line; other messages with a final colon are complete."""
_ANSWER = pattern(r"^\s*['\"](?:message|detail)['\"]: ?(?:'([^']{6,300})'|\"([^\"]{6,300})\")")
_MESSAGE_BELOW = frozenset({"native.cmake", "native.rust"})
"""Rule ids of errors whose message is on the next line."""
MIN_WORDS = 3
MAX_BLANK_LINES = 3
_MAX_ANSWER_LINES = 6
"""Maximum number of lines from the opening bracket of a printed error response to its message."""
MAX_REASON_LINES = 40
"""Maximum number of lines from a validation error to its first reason."""
MAX_GAP = 4
"""Maximum number of lines from an error to its own frames below it."""
_OUTERMOST_FUNCTIONS = frozenset({"<module>", "_bootstrap", "_run_module_as_main"})
_MAX_STACK_LINES = 60
"""Maximum number of lines from a fault to its stack."""
_MAX_FAULTS = 8
"""Maximum number of fault lines that share one stack."""


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One error of a log: `frames` are outermost first, `frame` is one place as file:function or file:line.

    `chain`: how it is chained to the error before it. `weak`: 1 if any other error of a running program takes
    precedence, 2 if it only repeats or hints at another error. `native`: not a Python exception. `header`:
    the message on the error's own line, if the actual message is below.
    """

    type: str | None
    message: str
    line: LogLine
    frames: tuple[Frame, ...] = ()
    chain: Chain = ""
    native: bool = False
    frame: str | None = None
    rule: str = "traceback.terminal"
    weak: int = 0
    header: str = ""


@dataclass(slots=True)
class Stream:
    """Parser state of one process; `below`: frames may belong to the error above, `inward` counts votes."""

    frames: list[Frame] = field(default_factory=list)
    chain: Chain = ""
    open: bool = False
    await_message: ErrorRecord | None = None
    records: list[ErrorRecord] = field(default_factory=list)
    cut: ErrorRecord | None = None
    defined: str = ""
    stack: list[Frame] | None = None
    below: bool = False
    inward: int = 0


def end_stack(stream: Stream) -> None:
    """Assign a finished stack to the faults above it that have no frames yet."""
    stack, stream.stack = stream.stack, None
    if not stack:
        return
    frames = tuple(reversed(stack))
    last = stream.records[-1].line.number if stream.records else 0
    for at in range(max(0, len(stream.records) - _MAX_FAULTS), len(stream.records)):
        record = stream.records[at]
        if not record.frames and record.line.number >= last - _MAX_STACK_LINES:
            stream.records[at] = replace(record, frames=frames)


def begin(stream: Stream, line: LogLine) -> None:
    """Prepare for a first frame: right below an error, it may belong to that error."""
    if stream.open or stream.frames or not stream.records:
        return
    last = stream.records[-1]
    stream.below = not last.frames and not last.native and line.number <= last.line.number + MAX_GAP
    stream.inward = 0


def count_inward_call(stream: Stream, text: str) -> None:
    """Count code lines that call the function of the previous frame: a sign of innermost-first order."""
    if len(stream.frames) > 1 and "def " not in text and f"{stream.frames[-2].function}(" in text:
        stream.inward += 1


def _is_inward(stream: Stream) -> bool:
    """True if the frames below an error are printed innermost first."""
    first, last = stream.frames[0], stream.frames[-1]
    return stream.inward * 2 >= len(stream.frames) or (
        last.function in _OUTERMOST_FUNCTIONS and first.function not in _OUTERMOST_FUNCTIONS
    )


def close(stream: Stream) -> None:
    """End an open traceback without an error line: record its last code line or frame."""
    cut, stream.cut = stream.cut, None
    if not stream.open or not stream.frames:
        return
    if stream.below and not stream.records[-1].frames:
        frames = tuple(reversed(stream.frames)) if _is_inward(stream) else tuple(stream.frames)
        stream.records[-1] = replace(stream.records[-1], frames=frames)
        stream.frames, stream.below = [], False
        return
    if cut is None and not stream.records:
        empty = LogLine(0, "", "", "", 0, 0, "")
        cut = ErrorRecord(None, "", empty, rule=CUT)
    if cut is not None:
        add(stream, replace(cut, frames=tuple(stream.frames), chain=stream.chain))
        stream.await_message = None


def add(stream: Stream, record: ErrorRecord) -> None:
    """Add an error, which ends the open traceback."""
    before = stream.records[-1] if stream.records else None
    if before and before.message.endswith("raised:") and record.line.number == before.line.number + 1:
        record = replace(record, frames=before.frames, chain=before.chain)
    if whole := _INVALID_LINE.match(record.message):
        record = replace(record, message=whole.group(2)[:MAX_MESSAGE_CHARS], header=whole.group(1))
    stream.records.append(record)
    empty = record.message[-1:] in {"", ":"} or record.message.endswith(" - {")
    empty = empty or (_is_invalid(record) and not record.header)
    empty = empty or record.rule in _MESSAGE_BELOW
    stream.await_message = record if empty else None
    stream.frames, stream.chain, stream.open, stream.cut = [], "", False, None
    stream.below = False


def _is_invalid(record: ErrorRecord) -> bool:
    """True for a validation error, whose reasons are on the lines below."""
    return (record.type or "").endswith("ValidationError") or _INVALID.search(record.message) is not None


def invalid_reason(text: str) -> str:
    """Return the reason on a line below a validation error, or ""."""
    is_below = text[:1].isspace() or text.startswith(_REASON)
    found = _PYDANTIC.match(f" {text}") if is_below else None
    return next(filter(None, found.groups())).strip()[:MAX_MESSAGE_CHARS] if found else ""


def complete(stream: Stream, line: LogLine) -> bool:
    """Complete the error above with a message on this line; return whether the line was used."""
    record = stream.await_message
    if record is None:
        return False
    message = invalid_reason(line.text)
    if message:
        stream.records[-1] = replace(record, message=message, line=line, header=record.message)
        stream.await_message = None
        return True
    if _is_invalid(record) and line.number - record.line.number < MAX_REASON_LINES:
        return False
    if record.message.endswith("{"):
        return _complete_response(stream, record, line)
    stream.await_message = None
    if not _has_message_below(record, line):
        return False
    stream.records[-1] = replace(record, message=line.text.strip()[:MAX_MESSAGE_CHARS], line=line)
    if _is_invalid(stream.records[-1]):
        stream.await_message = stream.records[-1]
    return True


def _has_message_below(record: ErrorRecord, line: LogLine) -> bool:
    """True if an error line introduces its message and the line below may be the message."""
    below = record.rule in _MESSAGE_BELOW and len(line.text.split()) >= MIN_WORDS
    announces = below or not record.message or record.message.endswith(_ANNOUNCING)
    named = not record.message and "." in (record.type or "")
    apart = MAX_BLANK_LINES if named else 1  # a library's message may start after blank lines
    next_line = line.number <= record.line.number + apart
    if not (announces and next_line and record.line.text.rstrip()[-1:] == ":"):
        return False
    if line.level or "Traceback (most" in line.text or line.text.startswith("```"):
        return False
    return PYTHON.search(line.text) is None and terminal(line.text) is None


def _complete_response(stream: Stream, record: ErrorRecord, line: LogLine) -> bool:
    """Complete a multi-line error response with a message on this line; return whether it was used."""
    found = _ANSWER.match(line.text)
    if found is not None:
        message = found.group(1) or found.group(2)
        stream.records[-1] = replace(record, message=message, line=line)
    if found is not None or line.number - record.line.number >= _MAX_ANSWER_LINES:
        stream.await_message = None
    return found is not None
