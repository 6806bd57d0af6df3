"""Errors in a log: Python tracebacks, bare error lines, native faults; each with frames and place.

In: `LogLine`s. Out: `ErrorRecord`s in the order of the log, one per raised exception or fault. Lines
of several processes may be interleaved: each process is read as a stream of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from app.extract.loglines import LogLine
from app.extract.patterns import pattern
from app.extract.rules import Rule, load_rules

Chain = Literal["", "caused_by", "during"]

MAX_ERRORS = 400
"""What is kept of a log; a crash loop repeats itself."""
MAX_MESSAGE_CHARS = 400
MAX_FRAMES = 80

_FRAME = pattern(r"File \"([^\"]{1,400})\", line \d{1,7}(?:, in ([\w<>.$-]{1,80}))?")
_ENDINGS = (
    "(?:Error|Exception|Interrupt|Exit|Iteration|Timeout|Warning|Fault|Failed|Failure|Empty|Full|Dead|Died"
    "|OutOfResources|Unsupported|Invalid|NotFound|Expired|Aborted|Cancelled)"
)
_TERMINAL = pattern(
    r"^[ \t]*(?:E[ \t]+)?("
    rf"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*{_ENDINGS}|(?:[A-Za-z_]\w*\.)+{_ENDINGS}|Exception|OutOfResources"
    r")(?:\([\w.]+\))?(?::[ \t]?(.*))?$"
)
_INLINE = pattern(
    r"(?:^|[\s'\"(:|])((?:[a-z_][\w]*\.)*"
    r"(?:[A-Z]\w*(?:Error|Exception|Unsupported)|Exception|\w*OutOfResources)): (\S.{0,300})"
)
_ASSERT = pattern(r"^\s*assert\s+(.{3,200})$")
_PYDANTIC = pattern(
    r"^\s+(?:(?:Value error|Assertion failed), (.{3,400}?)(?: \[type=|$)|(.{3,400}?) \[type=)"
)
_CALLS = ("The above exception was the direct cause", "During handling of the above exception")


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in a traceback, without its line number: file path as printed and function."""

    path: str
    function: str

    @property
    def file(self) -> str:
        """The file's own name."""
        return self.path.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def place(self) -> str:
        """`file.py:function`."""
        return f"{self.file}:{self.function}" if self.function else self.file


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One error. `frames` are outermost first; `chain` says how it follows the record before it."""

    type: str | None
    message: str
    line: LogLine
    frames: tuple[Frame, ...] = ()
    chain: Chain = ""
    native: bool = False
    frame_hint: str | None = None
    rule: str = "traceback.terminal"


@dataclass(slots=True)
class _Stream:
    """What is gathered of one process."""

    frames: list[Frame] = field(default_factory=list)
    chain: Chain = ""
    open: bool = False
    await_message: ErrorRecord | None = None
    records: list[ErrorRecord] = field(default_factory=list)
    asserted: str = ""


def find_errors(lines: Iterable[LogLine]) -> list[ErrorRecord]:
    """All errors of a log in the order in which they are printed."""
    streams: dict[str, _Stream] = {}
    for line in lines:
        if not line.text.strip():
            continue
        stream = streams.setdefault(line.process, _Stream())
        _read(stream, line)
        if sum(len(item.records) for item in streams.values()) >= MAX_ERRORS:
            break
    records = [record for stream in streams.values() for record in stream.records]
    return sorted(records, key=lambda record: record.line.number)


def _read(stream: _Stream, line: LogLine) -> None:
    text = line.text
    if stream.await_message is not None and _complete(stream, line):
        return
    if "Traceback (most recent call last)" in text:
        stream.frames, stream.open = [], True
        return
    if text.lstrip().startswith(_CALLS):
        stream.chain = "caused_by" if "direct cause" in text else "during"
        return
    if 'File "' in text and (found := _FRAME.search(text)):
        if len(stream.frames) < MAX_FRAMES:
            stream.frames.append(Frame(found.group(1), found.group(2) or ""))
        stream.open = True
        rest = text[found.end() :]
        if len(rest) > 12:
            _read_inline(stream, line, rest)
        return
    if stream.open and "assert " in text and (asserted := _ASSERT.match(text)):
        stream.asserted = asserted.group(1)
    if record := _native(line, late=False) or _terminal(stream, line) or _native(line, late=True):
        _add(stream, record)


def _terminal(stream: _Stream, line: LogLine) -> ErrorRecord | None:
    """The last line of a traceback, or an error line that stands alone."""
    text = line.text
    found = _TERMINAL.match(text) if text[:1] not in "({<" else None
    if found:
        kind, message = found.group(1), (found.group(2) or "").strip()
        if found.group(2) is None and not (stream.open and stream.frames) and "." not in kind:
            return None
        if kind.endswith(("Warning", "Exit")) and not stream.open:
            return None
        return ErrorRecord(kind, message[:MAX_MESSAGE_CHARS], line, tuple(stream.frames), stream.chain)
    if line.level in {"ERROR", "CRITICAL", "FATAL"} or "Error: " in text or "Exception: " in text:
        inline = _INLINE.search(text)
        if inline:
            return ErrorRecord(
                inline.group(1), inline.group(2).strip()[:MAX_MESSAGE_CHARS], line,
                tuple(stream.frames) if stream.open else (), stream.chain, rule="traceback.inline",
            )  # fmt: skip
    return None


def _read_inline(stream: _Stream, line: LogLine, rest: str) -> None:
    """A flattened text prints the frame, its code and the error in one line."""
    if "Error" in rest or "Exception" in rest:
        found = _INLINE.search(rest)
        if found:
            _add(
                stream,
                ErrorRecord(
                    found.group(1), found.group(2).strip()[:MAX_MESSAGE_CHARS], line,
                    tuple(stream.frames), stream.chain, rule="traceback.flat",
                ),
            )  # fmt: skip


def _add(stream: _Stream, record: ErrorRecord) -> None:
    stream.records.append(record)
    empty = record.message[-1:] in {"", ":"} or (record.type or "").endswith("ValidationError")
    stream.await_message = record if empty and not record.native else None
    stream.frames, stream.chain, stream.open = [], "", False


def _complete(stream: _Stream, line: LogLine) -> bool:
    """Whether this line gives the message that the error line above it lacks."""
    record = stream.await_message
    if record is None:
        return False
    found = _PYDANTIC.match(line.text)
    if found:
        stream.records[-1] = replace(
            record, message=(found.group(1) or found.group(2)).strip()[:MAX_MESSAGE_CHARS], line=line
        )
        stream.await_message = None
        return True
    if (record.type or "").endswith("ValidationError") and line.number - record.line.number < 40:
        return False
    stream.await_message = None
    if record.line.text.rstrip()[-1:] != ":" or line.number != record.line.number + 1:
        return False
    if line.level or _FRAME.search(line.text) or _TERMINAL.match(line.text):
        return False
    stream.records[-1] = replace(record, message=line.text.strip()[:MAX_MESSAGE_CHARS], line=line)
    return True


def _native(line: LogLine, *, late: bool) -> ErrorRecord | None:
    """A fault that no Python traceback tells: the rules of `lists/native.toml`.

    `late` rules read what a sentence says of an error, where no other form fits the line.
    """
    text = line.text
    for rule in _native_rules():
        if rule.extra.get("late", False) != late or not any(guard in text for guard in rule["guards"]):
            continue
        found = rule.pattern.search(text)
        if found:
            groups = found.groupdict()
            return ErrorRecord(
                rule["type"] or groups.get("type"), (groups.get("message") or "").strip()[:MAX_MESSAGE_CHARS],
                line, native=True, frame_hint=groups.get("frame"), rule=rule.id,
            )  # fmt: skip
    return None


def _native_rules() -> Sequence[Rule]:
    return load_rules("native")


def title_error(title: str) -> ErrorRecord | None:
    """The error that a title names, as "[Bug]: ValueError: …" does."""
    found = _INLINE.search(title)
    if found is None:
        return None
    line = LogLine(1, title, "", "", 0, len(title), title)
    return ErrorRecord(found.group(1), found.group(2).strip()[:MAX_MESSAGE_CHARS], line, rule="title.inline")
