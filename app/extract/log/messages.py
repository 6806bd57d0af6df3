"""Errors without their wrapping.

In: `ErrorRecord`s and log lines. Out: causes (short class, own words, innermost distinctive place), from
which what torch, NCCL and the compiler append is taken off; and the lines that only report another error
(`lists/wrappers.toml`), with the inner error where such a line quotes it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.log.frames import decisive_frame
from app.extract.log.lines import LogLine
from app.extract.log.process_stream import ErrorRecord
from app.extract.rules.patterns import escape, pattern
from app.extract.rules.rules import Rule, load_rule_set

ONLY_WRAPPER = "wrapper.only"
"""The rule of what stands for a cause that is not shown."""
COMPILER_ERRORS = frozenset(
    {"InductorError", "LoweringException", "BackendCompilerFailed", "InternalTorchDynamoError"}
)
"""torch.compile's own classes; their message begins with the error that was raised inside."""
MIN_SENTENCE_CHARS = 24
"""A shorter first sentence ("CUDA out of memory.") needs its second to be distinctive."""
MIN_CLAUSE_CHARS = 60
MAX_MESSAGE_CHARS = 160
"""A longer message is kept up to its last clause within this length."""
MAX_COMMAND_CHARS = 160
"""A failed command is cut to its beginning; a build's runs to thousands of letters."""

_CUDA = pattern(r"^(?:\[[^\]]{1,60}\] ?)?(CUDA|HIP|NCCL) [Ee]rror(?: in)?: ?(?:\S{1,200}:\d+, )?(.{3,300})")
_TRAILER = pattern(
    r" ?(?:CUDA kernel errors might|HIP kernel errors might|Compile with `|Search for `cuda"
    r"|For debugging consider"
    r"|GPU \d+ has a total|If reserved but|See documentation for|Exception raised from"
    r"|, NCCL version|Last error:| \[type=)"
)
_ANSWERED = pattern(
    r"['\"]message['\"]: (?:'((?:[^'\\]|\\.){6,300})(?:'|$)|\"((?:[^\"\\]|\\.){6,400})(?:\"|$))"
)
_STATUS = pattern(r"^Error code: \d{3} - ([^{].{3,400})")
_VALUE_ERROR = pattern(r"['\"]msg\\?['\"]: \\?['\"](?:Value error|Assertion failed), ([^'\"\\]{6,300})")
_ENFORCED = pattern(r"^\[enforce fail at \S{1,200}:\d+\] .{1,120}?\. (\S.{8,400})")
"""A check of torch's core in front of the words for it."""
_LOGGED_AT = pattern(r"^\[\d\d:\d\d:\d\d\] (?:[^\s:]{1,200}/)?([^\s:/]{1,80}:\d+): ")
"""A library's own log prefix within its message."""
"""A server's words in its client's error."""
_SENTENCE = pattern(r"[.!?] +[A-Z`'\"]|(?:\w{3}|[\d'\"`)\]])[.!?] +(?:[a-z]\w*=|[a-z({\[<])|[.!?] - ")
_ABBREVIATION = (" etc.", " resp.", " approx.", " vs.", " fig.", " cf.")
_DUMP = pattern(
    r"[ :,(=]+(?:\{(?:[^'\"]|['\"]\w*['\"]:)|\[[^\]]{40}|\w*Namespace\(|\w*Config\(|<[\w.]+ object at )"
)
"""Where a message begins to print a whole object."""
_CLAUSE = pattern(r"[,;] | - | \(")
_TYPED = pattern(r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception)): (\S.{0,400})")
MAX_WRAPPER_CHARS = 2_000
MAX_HANDLER_CHARS = 300
MAX_PLAIN_CHARS = 120
"""A longer wrapper line is cut to its first sentence."""
_REPR = pattern(r"^['\"]?(\w+(?:Error|Exception))\(['\"]?(.{3,300})")
_LOUD = frozenset({"ERROR", "CRITICAL"})
_FAILS = ("error", "exception", "fail", "can't", "cannot", "unable", "died")
_AFTERWORDS = (
    "CUDA kernel errors",
    "For debugging",
    "Compile with",
    "The above",
    "During handling",
    "raise ",
)


def as_cause(record: ErrorRecord) -> ErrorRecord:
    """An error with a short type and its innermost distinctive place, without what torch appends to all."""
    kind = (record.type or "").rsplit(".", 1)[-1] or None
    message, place = record.message, record.frame
    inner = _TYPED.match(message) if kind in COMPILER_ERRORS else None
    if inner:
        kind, message = inner.group(1), inner.group(2)
    answered = _ANSWERED.search(message) if "Error code: " in message else None
    if answered:
        value_error = _VALUE_ERROR.search(message)
        message = value_error.group(1) if value_error else next(group for group in answered.groups() if group)
    elif found := _STATUS.match(message):
        message = found.group(1)
    if message[:1] == "[" and (enforced := _ENFORCED.match(message)):
        message = enforced.group(1)
    if message[:1] == "[" and (prefix := _LOGGED_AT.match(message)):
        message = message[prefix.end() :]
        place = prefix.group(1)
    trailer = _TRAILER.search(message)
    if trailer and trailer.start() > 3:
        message = message[: trailer.start()].rstrip()
    family = _CUDA.match(message)
    if family and kind in {"RuntimeError", "AcceleratorError", "DistBackendError", "HIPError", None}:
        name = family.group(1)
        kind = f"{name} error"
        message = family.group(2)
        if name == "CUDA" and message.startswith("out of memory"):
            kind = "OutOfMemoryError"
    message = _short_command(first_sentence(message.strip()))
    return replace(record, type=kind, message=message, frame=place or decisive_frame(record.frames))


def called_from(cause: ErrorRecord, other: ErrorRecord) -> ErrorRecord:
    """The same cause at another's place."""
    return replace(cause, frame=other.frame, frames=other.frames)


def first_sentence(message: str) -> str:
    """A message without its advice and dumps: the first sentence, if it is long enough to mean something."""
    for found in _SENTENCE.finditer(message):
        mark = found.group()
        end = found.start() + min(mark.find(sign) for sign in (". ", "! ", "? ") if sign in mark) + 1
        if end >= MIN_SENTENCE_CHARS and not message[:end].lower().endswith(_ABBREVIATION):
            message = message[:end]
            break
    return _without_dump(message)


def _without_dump(message: str) -> str:
    """A message that is still too long, cut where it prints an object, else behind a clause."""
    if len(message) <= MAX_COMMAND_CHARS or message.startswith("Command "):
        return message
    for found in _DUMP.finditer(message):
        if found.start() >= MIN_SENTENCE_CHARS:
            message = message[: found.start()]
            break
    ends = [found.start() for found in _CLAUSE.finditer(message[: MAX_MESSAGE_CHARS + 1])]
    if len(message) > MAX_MESSAGE_CHARS and ends and ends[-1] >= MIN_CLAUSE_CHARS:
        return message[: ends[-1]]
    return message


def _short_command(message: str) -> str:
    if len(message) <= MAX_COMMAND_CHARS or not message.startswith("Command "):
        return message
    options = message.find(", '-D")
    end = options if 0 < options < MAX_COMMAND_CHARS else message.rfind(", ", 0, MAX_COMMAND_CHARS)
    return message[:end] if end > 0 else message[:MAX_COMMAND_CHARS]


def in_words(causes: list[ErrorRecord]) -> list[ErrorRecord]:
    """A fault known by its signal's number alone takes the words that the interpreter has for it."""
    if not causes or causes[0].rule != "native.signal_received":
        return causes
    other = next((cause for cause in causes[1:] if cause.type == causes[0].type), None)
    return [_placed_like(other, causes[0]), *(c for c in causes[1:] if c is not other)] if other else causes


def with_message(causes: list[ErrorRecord]) -> list[ErrorRecord]:
    """A bare cause takes the words that another line of the log gives for the same type."""
    if not causes or causes[0].message:
        return causes
    own = causes[0].type == "AssertionError"  # each bare assertion is one of its own
    same = [c for c in causes[1:] if c.type == causes[0].type and c.message and not (own and c.frames)]
    if not same:
        return causes
    first = replace(causes[0], message=same[0].message, line=same[0].line)
    return [first, *(c for c in causes[1:] if c is not same[0])]


def behind_nccl(causes: list[ErrorRecord]) -> list[ErrorRecord]:
    """The CUDA error of which NCCL only says that it met one, at the place that called NCCL."""
    if causes and causes[0].rule == "native.nccl_cuda_failure":
        caller = next((c for c in causes[1:] if c.frames and "nccl" in c.frames[-1].path), None)
        return [called_from(causes[0], caller), *causes[1:]] if caller else causes
    if not causes or "unhandled cuda error" not in causes[0].message:
        return causes
    fault = next((c for c in causes[1:] if c.type == "CUDA error" and c.message), None)
    return [_placed_like(fault, causes[0]), *(c for c in causes if c is not fault)] if fault else causes


def _placed_like(cause: ErrorRecord, other: ErrorRecord) -> ErrorRecord:
    return cause if cause.frame else called_from(cause, other)


def wrapper_rule(text: str) -> Rule | None:
    """The rule by which an error only wraps another, or None."""
    met = load_rule_set("wrappers").meeting(text)
    return next((rule for rule in met if not rule.extra.get("hint")), None)


def is_hint(text: str) -> bool:
    """Whether a message sends its reader to another error, and names nothing else."""
    return any(rule.extra.get("hint") for rule in load_rule_set("wrappers").meeting(text))


@lru_cache(maxsize=1)
def _words() -> Any:
    return pattern("|".join(escape(word) for word in load("wrappers")["words"]))


def quoted_error(rule: Rule, record: ErrorRecord) -> list[ErrorRecord]:
    """The real error, where a wrapper's own words quote it."""
    text = f"{record.type or ''}: {record.message}"
    found = rule.pattern.search(text)
    groups = found.groupdict() if found else {}
    if not groups.get("inner"):
        return []
    words = groups["inner"].strip()
    typed = _REPR.match(words)
    kind, message = (typed.group(1), typed.group(2)) if typed else (None, words)
    message = message.partition("')")[0].partition('")')[0].strip("'\")( ")
    if not message or wrapper_rule(message) is not None:
        return []
    return [as_cause(replace(record, type=kind or record.type, message=message, frames=()))]


def wrapper_lines(
    lines: Sequence[LogLine], errors: Iterable[ErrorRecord]
) -> list[tuple[str, LogLine, Rule | None]]:
    """Wrapper lines that are no exception: plain lines of handlers, of the engine's own and of others."""
    known = {record.line.number: record for record in errors}
    found: list[tuple[str, LogLine, Rule | None]] = []
    for line in _speaking(lines):
        text = line.text
        if line.number in known:
            text = _before(known[line.number])
        if text.lstrip().startswith(("raise ", "#")) or 'File "' in text:
            continue
        rule = wrapper_rule(text[:MAX_WRAPPER_CHARS])
        if rule is not None and not rule.extra.get("noise"):
            found.append((wrapper_message(rule, text), line, rule))
    return found + [(text, line, None) for text, line in _handlers(lines, set(known))]


def wrapper_message(rule: Rule, text: str) -> str:
    """A wrapper's words: only those of its rule if these are a `part` of a line that says other things."""
    if rule.extra.get("part"):
        hit = rule.pattern.search(text)
        return str(hit.group()) if hit else text
    text = text.partition(", Traceback")[0].strip()[:MAX_WRAPPER_CHARS]
    return first_sentence(text) if len(text) > MAX_PLAIN_CHARS else text


def _before(record: ErrorRecord) -> str:
    """What a handler says in front of the error that it prints in the same line."""
    text = record.line.text
    if record.native:
        at = text.find(record.message)
    else:
        at = text.find(record.type or "\n") if record.rule == "traceback.inline" else -1
    return record.line.text[: max(at, 0)].rstrip(" :'\"")


def _speaking(lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """The lines in which a wrapper's word stands: one look at the whole is cheaper than one at each."""
    text = "\n".join(line.text for line in lines)
    hits = iter(_words().finditer(text))
    at, end = -1, -1
    for hit in hits:
        start = hit.start()
        if start < end:
            continue
        while end <= start:
            at += 1
            end += len(lines[at].text) + 1
        yield lines[at]


def _handlers(lines: Sequence[LogLine], known: set[int]) -> Iterator[tuple[str, LogLine]]:
    """What a handler logs right above the traceback of the error that it caught."""
    last: dict[str, LogLine] = {}
    for line in lines:
        text = line.text
        if "Traceback (most recent call last)" in text:
            above = last.get(line.process)
            if above is not None and above.number not in known and _names_failure(above):
                yield above.text.strip(), above
        if text and not text.isspace():
            last[line.process] = line


def _names_failure(line: LogLine) -> bool:
    text = line.text
    if line.level not in _LOUD or len(text) > MAX_HANDLER_CHARS or text[:1].isspace():
        return False
    low = text.lower()
    return not text.startswith(_AFTERWORDS) and any(word in low for word in _FAILS)
