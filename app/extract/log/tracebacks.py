"""Find the errors of a log: Python tracebacks, single error lines and native faults, with their frames.

In: `LogLine`s. Out: `ErrorRecord`s in the order of the log, one per raised exception or fault. Lines of
several processes may be interleaved: each process is parsed as a separate stream. Native faults are errors of
kernels, compilers, shells, installers and parsers, matched by the rules of `lists/native.toml`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from app.extract.log.course import QUIET
from app.extract.log.error_lines import (
    MAX_MESSAGE_CHARS,
    bare,
    cut_message,
    in_title,
    inline,
    terminal,
)
from app.extract.log.frames import PYTHON, Frame, join_frames, other_frame, pytest_place, stack_frame
from app.extract.log.lines import LOUD, LogLine
from app.extract.log.process_stream import (
    ANSWER,
    ErrorRecord,
    Stream,
    add,
    begin,
    close,
    complete,
    count_inward_call,
    end_stack,
    invalid_reason,
)
from app.extract.rules.patterns import escape, pattern
from app.extract.rules.rules import Rule, RuleSet, load_rules

_ANSWER_TYPE = pattern(r"""["']?type["']?[:=] ?["']([A-Za-z]\w{3,60})["']""")
_LOGGED_AT = pattern(r" ([\w.+-]{3,60}\.cpp:\d{1,6})\]")
_ESCAPED = pattern(r"\\(.)")


@dataclass(frozen=True, slots=True)
class FaultRules:
    """Rules that may match in a text, tried before (`early`) or after (`late`) Python errors; all guards."""

    early: tuple[Rule, ...]
    late: tuple[Rule, ...]
    guards: tuple[str, ...]


def fault_rules(text: str) -> FaultRules | None:
    """Return the rules that may match in a text; one pass over it is cheaper than one for each line."""
    rules = _guards().meeting(text)
    if not rules:
        return None
    late = tuple(rule for rule in rules if rule.extra.get("late", False))
    early = tuple(rule for rule in rules if not rule.extra.get("late", False))
    return FaultRules(early, late, tuple(dict.fromkeys(guard for rule in rules for guard in rule["guards"])))


@lru_cache(maxsize=1)
def _guards() -> RuleSet:
    rules = load_rules("native")
    return RuleSet(rules, ["|".join(escape(guard) for guard in rule["guards"]) for rule in rules])


def is_guarded(text: str, rules: FaultRules) -> bool:
    """True if a line contains a guard of any rule."""
    return any(map(text.__contains__, rules.guards))


def find_fault(line: LogLine, rules: tuple[Rule, ...]) -> ErrorRecord | None:
    """Return the first fault that the rules find in a line."""
    for rule in rules:
        if not any(guard in line.text for guard in rule["guards"]):
            continue
        found = rule.pattern.search(line.text)
        if found:
            groups = found.groupdict()
            place = groups.get("frame")
            if place is None and rule.id == "native.watchdog" and (at := _LOGGED_AT.search(line.raw[:400])):
                place = at.group(1)  # the watchdog's own source line is the only place
            kind, message = groups.get("type"), groups.get("message") or ""
            if rule.id == ANSWER:
                kind, message = _parse_response(line.text, groups)
            return ErrorRecord(
                rule["type"] or kind,
                message.strip()[:MAX_MESSAGE_CHARS],
                line,
                native=True,
                frame=place,
                rule=rule.id,
                weak=int(rule.extra.get("weak", 0)),
            )
    return None


def _parse_response(text: str, groups: dict[str, str | None]) -> tuple[str | None, str]:
    """Return class and message of an error response; of a multi-line message, the line with the reason."""
    words = next((words for name, words in groups.items() if words and name != "type"), "")
    first, *below = _ESCAPED.sub(
        lambda found: "\n" if found.group(1) == "n" else found.group(1), words
    ).split("\n")
    reasons = filter(None, map(invalid_reason, below)) if "validation error" in first else iter(())
    plain = filter(None, map(str.strip, below)) if first.endswith("validation error:") else iter(())
    kinds = [found.group(1) for found in _ANSWER_TYPE.finditer(text.replace(words, ""))]
    return kinds[-1] if kinds else None, next(reasons, next(plain, first))


MAX_ERRORS = 400
"""Maximum number of errors kept; crash loops repeat the same ones."""
MAX_FRAMES = 80
_MARKS = ("Error", "Exception", "Traceback", 'File "', "E    ", "ERROR", "already dead")

_NAMED = ("Error: ", "Exception: ", "gaierror: ", "Error'>;", "Exception'>;")
"""Separators between class and message inside a line."""
_ASSERT = pattern(r"^\s*assert\s+(.{3,200})$")
_RAISE = pattern(r"^\s*raise\s+(?:\w+\.)*(\w+(?:Error|Exception))\((?:['\"]([^'\"{}]{3,300})['\"]?\)?)?")
_REPR = pattern(r"^([A-Z]\w*(?:Error|Exception))\((?:'([^']{6,300})'|\"([^\"]{6,300})\")\)$")
_DEF = pattern(r"^\s*(?:async )?def (\w{1,80})\(")
_FAILED_TEST = pattern(r"(?:^|[\s\]|])E {3,}(assert \S.{0,200})$")
_TEST = pattern(r"(?:^|[\s/])([\w.-]{1,100}\.py)::(?:[A-Z]\w{0,80}::)*(\w{1,160})")
"""File and test name, which pytest's summary prints before the error."""
_CALLS = ("The above exception was the direct cause", "During handling of the above exception")
_STACKS = ("Stack (most recent call first)", "Current thread 0x", "At:")
WEAK_CODE = 2
"""`weak` value of an error known only from code or a repr."""


def may_hold_errors(text: str) -> bool:
    """True if a text may contain errors; a cheap check before it is split into lines."""
    return any(mark in text for mark in _MARKS) or fault_rules(text) is not None


def find_errors(lines: Iterable[LogLine]) -> list[ErrorRecord]:
    """Return all errors of a log in the order of its lines."""
    content_lines = join_frames([line for line in lines if line.text and not line.text.isspace()])
    native = fault_rules("\n".join(line.text for line in content_lines))
    streams: dict[str, Stream] = {}
    count = 0
    for line in content_lines:
        stream = streams.get(line.process)
        if stream is None:
            stream = streams[line.process] = Stream()
        before = len(stream.records)
        _read(stream, line, native)
        count += len(stream.records) - before
        if count >= MAX_ERRORS:
            break
    for stream in streams.values():
        end_stack(stream)
        close(stream)
    records = [record for stream in streams.values() for record in stream.records]
    return sorted(records, key=lambda record: record.line.number)


def _read(stream: Stream, line: LogLine, native: FaultRules | None) -> None:
    text = line.text
    if stream.await_message is not None and complete(stream, line):
        return
    if "Traceback (most recent call last)" in text:
        close(stream)
        stream.frames, stream.open = [], True
        return
    if "exception" in text and text.lstrip().startswith(_CALLS):
        close(stream)
        stream.chain = "caused_by" if "direct cause" in text else "during"
        return
    if (stream.stack is not None or text.startswith(_STACKS)) and _in_stack(stream, text):
        return
    if (" in " in text or 'File "' in text or ".py:" in text) and _is_place(stream, line):
        return
    if stream.below:
        count_inward_call(stream, text)
    if "assert " in text or "raise " in text or "def " in text:
        _read_code(stream, line)
    rules = native if native is not None and is_guarded(text, native) else None
    record = find_fault(line, rules.early) if rules else None
    record = record or _terminal(stream, line) or _repr_error(line)
    record = record or (find_fault(line, rules.late) if rules else None)
    if record:
        add(stream, record)


def _is_place(stream: Stream, line: LogLine) -> bool:
    """Read a line as a frame in any supported format; return whether it was one."""
    text = line.text
    if 'File "' in text and (found := PYTHON.search(text)):
        _add_frame(stream, line, found)
        return True
    frame = other_frame(text)
    if frame is not None:
        begin(stream, line)
        if len(stream.frames) < MAX_FRAMES:
            stream.frames.append(frame)
        stream.open, stream.cut = True, None
        return True
    tested = pytest_place(text)
    if tested is not None:
        _add_test_place(stream, *tested)
    return tested is not None


def _add_frame(stream: Stream, line: LogLine, found: Any) -> None:
    """Add a frame and, in flattened text, the error that follows in the same line."""
    begin(stream, line)
    function, rest = found.group(2) or "", line.text[found.end() :]
    if function.endswith("Error") and rest.startswith(":"):  # markup took "<module>" away
        function, rest = "", f" {function}{rest}"
    path = found.group(1)
    if len(stream.frames) < MAX_FRAMES and not path.isspace():
        stream.frames.append(Frame(path, function))
    stream.open, stream.cut = True, None
    if len(rest) > 12:
        _read_inline(stream, line, rest)


def _add_test_place(stream: Stream, path: str, error: str) -> None:
    """Add pytest's place line: below the error, or above the frame it called."""
    frame = Frame(path, stream.defined)
    last = stream.records[-1] if stream.records else None
    if error and last is not None and (last.type or "").endswith(error):
        stream.records[-1] = replace(last, frames=(*last.frames, frame))
    elif not error and len(stream.frames) < MAX_FRAMES:
        stream.frames.append(frame)


def _in_stack(stream: Stream, text: str) -> bool:
    """Read a line of an innermost-first stack below its fault; return whether it was one."""
    if stream.stack is None:
        stream.stack = []
        return True
    frame = stack_frame(text)
    if frame is None:
        end_stack(stream)
        return False
    if len(stream.stack) < MAX_FRAMES:
        stream.stack.append(frame)
    return True


def _read_code(stream: Stream, line: LogLine) -> None:
    """Read code between frames: its assertion or exception is the error if the traceback is truncated."""
    text = line.text
    if "assert " in text:
        if stream.frames and stream.cut is None and _ASSERT.match(text):
            stream.cut = ErrorRecord("AssertionError", "", line, rule="traceback.cut_assert")
        if (
            "E   " in line.raw
            and not _is_stated_above(stream, line)
            and (found := _FAILED_TEST.search(line.raw))
        ):
            frames = tuple(stream.frames)
            add(stream, ErrorRecord("AssertionError", found.group(1), line, frames, rule="pytest.assert"))
    elif "raise " in text:
        if stream.frames and stream.cut is None and (found := _RAISE.match(text)):
            kind, message = found.group(1), found.group(2) or ""
            stream.cut = ErrorRecord(kind, message, line, rule="traceback.cut_raise", weak=WEAK_CODE)
    elif "def " in text and (found := _DEF.match(text)):
        stream.defined = found.group(1)


def _is_stated_above(stream: Stream, line: LogLine) -> bool:
    """True if the line above already gave the failed assertion's message."""
    return bool(stream.records) and stream.records[-1].line.number == line.number - 1


def _terminal(stream: Stream, line: LogLine) -> ErrorRecord | None:
    """Read the last line of a traceback, or a single error line."""
    text = line.text
    found = terminal(text)
    if found:
        kind, message = found
        if message is None and not (stream.open and stream.frames) and "." not in kind:
            return None
        if kind == "Exception" and not message and not stream.frames:
            return None  # a person's heading
        if kind.endswith(("Warning", "Exit")) and not stream.open:
            return None
        return ErrorRecord(kind, cut_message(kind, message or ""), line, tuple(stream.frames), stream.chain)
    if line.level in LOUD or any(mark in text for mark in _NAMED):
        named_error = inline(text)
        frames = tuple(stream.frames) if stream.open else ()
        if named_error and (frames or line.level not in QUIET):
            place = _test_place(text)
            return ErrorRecord(*named_error, line, frames, stream.chain, frame=place, rule="traceback.inline")
    return None


def _test_place(text: str) -> str | None:
    """Return file and test of a line in pytest's summary."""
    found = _TEST.search(text) if "::" in text and " - " in text else None
    return f"{found.group(1)}:{found.group(2)}" if found else None


def _repr_error(line: LogLine) -> ErrorRecord | None:
    """Read an error logged as its `repr`; it has lower precedence than a printed error."""
    if line.level not in LOUD or line.text[-2:-1] not in {"'", '"'}:
        return None
    found = _REPR.match(line.text)
    if found is None:
        return None
    message = found.group(2) or found.group(3)
    return ErrorRecord(found.group(1), message, line, rule="traceback.shown", weak=WEAK_CODE)


def _read_inline(stream: Stream, line: LogLine, rest: str) -> None:
    """Read the error after a frame and its code in one line of flattened text."""
    named_error = inline(rest)
    if named_error is None and (kind := bare(rest)):
        named_error = kind, ""
    if named_error:
        frames = tuple(stream.frames)
        add(stream, ErrorRecord(*named_error, line, frames, stream.chain, rule="traceback.flat"))


def title_error(title: str) -> ErrorRecord | None:
    """Return the error named in a title, as in "[Bug]: ValueError: …"."""
    line = LogLine(1, title, "", "", 0, len(title), title)
    named_error = in_title(title)
    if named_error is not None:
        return ErrorRecord(*named_error, line, rule="title.inline")
    rules = fault_rules(title)
    found = (find_fault(line, rules.early) or find_fault(line, rules.late)) if rules else None
    return None if found is None or found.weak else found
