"""Normalise error messages and recognise wrappers.

In: `ErrorRecord`s and log lines. Out: causes (short class, message, innermost distinctive frame) without the
text that torch, NCCL and the compiler append; and wrappers, the lines that only report another error
(`lists/wrappers.toml`), with the inner error if they quote it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.log.frames import decisive_frame
from app.extract.log.lines import LogLine, first_hits
from app.extract.log.process_stream import ErrorRecord
from app.extract.rules.patterns import escape, pattern
from app.extract.rules.rules import Rule, load_rule_set

ONLY_WRAPPER = "wrapper.only"
"""The rule id of a wrapper that stands in for a cause the log does not show."""
COMPILER_ERRORS = frozenset(
    {"InductorError", "LoweringException", "BackendCompilerFailed", "InternalTorchDynamoError"}
)
"""torch.compile's wrapper classes; their message begins with the inner error."""
MIN_SENTENCE_CHARS = 24
"""Minimum length of a first sentence that is kept alone; "CUDA out of memory." needs the second."""
MIN_CLAUSE_CHARS = 60
MAX_MESSAGE_CHARS = 160
"""A longer message is cut at its last clause boundary within this length."""

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
_INVALID = pattern(
    r"^\[\{'type': '[a-z_]{3,40}', [^\n]{0,200}?'msg': \\?"
    r"(?:'(?:Value error, )?([^']{4,300})|\"(?:Value error, )?([^\"]{4,300}))"
)
"""Why the server refuses a request: pydantic's list of what is invalid in it, of which the first counts."""
_STATUS = pattern(r"^Error code: \d{3} - ([^{].{3,400})")
_ENFORCED = pattern(r"^\[enforce fail at \S{1,200}:\d+\] .{1,120}?\. (\S.{8,400})")
"""torch's enforcement check, printed before its message."""
_ASSERTED_AT = pattern(r"^Assertion error \((?:[^\s()]{1,200}/)?([\w.-]{1,80}:\d+)\): (\S.{3,300})")
"""A failed assertion of DeepGEMM: its place, and the condition or its words."""
_LOGGED_AT = pattern(r"^\[\d\d:\d\d:\d\d\] (?:[^\s:]{1,200}/)?([^\s:/]{1,80}:\d+): ")
"""A library's log prefix inside its message."""
_MARKUP = pattern(r"^`{3,}|\s*(?:\\?`){3,}.*$|\s#{2,4} [A-Z\x{1F41B}].*$")
"""Code fences and headings of the issue form, in a text that lost its line breaks."""
_SENTENCE = pattern(r"[.!?] +[A-Z`'\"]|(?:\w{3}|[\d'\"`)\]])[.!?] +(?:[a-z]\w*=|[a-z({\[<])|[.!?] - ")
_DUMP = pattern(
    r"[ :,(=]+(?:\{(?:[^'\"]|['\"]\w*['\"]:)|\[[^\]]{40}|\w*Namespace\(|\w*Config\(|<[\w.]+ object at )"
)
"""The start of an object dump in a message."""
_CLAUSE = pattern(r"[,;] | - | \(")
_TYPED = pattern(r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception)) ?: (\S.{0,400})")
MAX_WRAPPER_CHARS = 2_000
MAX_HANDLER_CHARS = 300
MAX_PLAIN_CHARS = 120
"""A longer wrapper line is reduced to its first sentence."""
MAX_WRAPPER_MESSAGE_CHARS = 300
"""A longer first sentence is the output of a build that lost its line breaks: the rule's match is kept."""
_REPR = pattern(r"^['\"]?(\w+(?:Error|Exception))\(['\"]?(.{3,300})")
_LOUD = frozenset({"ERROR", "CRITICAL"})
_FAILURE_WORDS = ("error", "exception", "fail", "can't", "cannot", "unable", "died")
_TRAILER_STARTS = (
    "CUDA kernel errors",
    "For debugging",
    "Compile with",
    "The above",
    "During handling",
    "raise ",
)
_NCCL_RULES = frozenset({"native.nccl_cuda_failure", "native.nccl_warning"})
"""What NCCL itself says of an error that its caller only sees as unhandled."""
_UNHANDLED = ("unhandled cuda error", "unhandled system error")
_NO_OPERATOR = pattern(r"'_C\w*' object has no attribute|No module named 'vllm\._C")
"""An error of who uses vLLM's compiled extension without having it."""
_NOT_LOADED = pattern(
    r"Failed to import from vllm\.\w+(?:: | with )(ImportError|OSError)\(['\"]([^'\"]{10,300})"
)
"""vLLM's warning that its compiled extension could not be loaded; it goes on without."""


def as_cause(record: ErrorRecord) -> ErrorRecord:
    """Normalise an error: short type, innermost distinctive frame, message without torch's trailer."""
    kind = (record.type or "").rsplit(".", 1)[-1] or None
    message, place = record.message, record.frame
    inner = _TYPED.match(message) if kind in COMPILER_ERRORS else None
    if inner:
        kind, message = inner.group(1), inner.group(2)
    answered = _ANSWERED.search(message) if "Error code: " in message else None
    if answered:
        message = next(group for group in answered.groups() if group)
    elif found := _STATUS.match(message):
        message = found.group(1)
    if invalid := _INVALID.match(message):
        message = (invalid.group(1) or invalid.group(2)).rstrip("\\")
    if message[:1] == "[" and (enforced := _ENFORCED.match(message)):
        message = enforced.group(1)
    if asserted := _ASSERTED_AT.match(message):
        place, message = asserted.group(1), asserted.group(2)
    if message[:1] == "[" and (prefix := _LOGGED_AT.match(message)):
        message = message[prefix.end() :]
        place = prefix.group(1)
    trailer = _TRAILER.search(message)
    if trailer and trailer.start() > 3:
        message = message[: trailer.start()].rstrip()
    family = _CUDA.match(message)
    if family and kind in {"RuntimeError", "AcceleratorError", "DistBackendError", "HIPError", None}:
        kind, message = f"{family.group(1)} error", family.group(2)
    message = first_sentence(message.strip())
    return replace(record, type=kind, message=message, frame=place or decisive_frame(record.frames))


def with_frames_of(cause: ErrorRecord, other: ErrorRecord) -> ErrorRecord:
    """Return the cause with the frames of another error."""
    return replace(cause, frame=other.frame, frames=other.frames)


def first_sentence(message: str) -> str:
    """Cut markup, advice and dumps off a message: keep its first sentence if that is long enough."""
    message = _MARKUP.sub("", message)
    for found in _SENTENCE.finditer(message):
        mark = found.group()
        end = found.start() + min(mark.find(sign) for sign in (". ", "! ", "? ") if sign in mark) + 1
        if end >= MIN_SENTENCE_CHARS:
            message = message[:end]
            break
    return _without_dump(message)


def _without_dump(message: str) -> str:
    """Shorten a message that is too long: cut at an object dump, else at a clause boundary."""
    if len(message) <= MAX_MESSAGE_CHARS:
        return message
    for found in _DUMP.finditer(message):
        if found.start() >= MIN_SENTENCE_CHARS:
            message = message[: found.start()]
            break
    ends = [found.start() for found in _CLAUSE.finditer(message[: MAX_MESSAGE_CHARS + 1])]
    if len(message) > MAX_MESSAGE_CHARS and ends and ends[-1] >= MIN_CLAUSE_CHARS:
        return message[: ends[-1]]
    return message


def borrow_message(causes: list[ErrorRecord]) -> list[ErrorRecord]:
    """Give a cause without a message that of another error of the same type."""
    if not causes or causes[0].message:
        return causes
    own = causes[0].type == "AssertionError"  # two bare assertions are rarely the same
    same = [c for c in causes[1:] if c.type == causes[0].type and c.message and not (own and c.frames)]
    if not same:
        return causes
    first = replace(causes[0], message=same[0].message, line=same[0].line)
    return [first, *(c for c in causes[1:] if c is not same[0])]


def resolve_nccl_error(causes: list[ErrorRecord]) -> list[ErrorRecord]:
    """Replace NCCL's "unhandled … error" by the error that it hides, at the frame that called NCCL."""
    if causes and causes[0].rule in _NCCL_RULES:
        caller = next((c for c in causes[1:] if c.frames and "nccl" in c.frames[-1].path), None)
        return [with_frames_of(causes[0], caller), *causes[1:]] if caller else causes
    is_unhandled = causes and any(words in causes[0].message for words in _UNHANDLED)
    if not is_unhandled:
        return causes
    hidden = (c for c in causes[1:] if c.message and (c.rule in _NCCL_RULES or c.type == "CUDA error"))
    fault = next(hidden, None)
    return [with_frames_of(fault, causes[0]), *(c for c in causes if c is not fault)] if fault else causes


def resolve_missing_operator(causes: list[ErrorRecord], lines: Iterable[LogLine]) -> list[ErrorRecord]:
    """Put before the error of a missing operator why vLLM's extension was not loaded, if the log says it."""
    if not causes or not _NO_OPERATOR.search(causes[0].message):
        return causes
    for line in lines:
        if "Failed to import" in line.text and (found := _NOT_LOADED.search(line.text)):
            fault = ErrorRecord(found.group(1), found.group(2), line, rule="native.extension_not_loaded")
            return [with_frames_of(fault, causes[0]), *causes]
    return causes


def wrapper_rule(text: str) -> Rule | None:
    """Return the rule by which an error is a wrapper, or None."""
    met = load_rule_set("wrappers").meeting(text)
    return next((rule for rule in met if not rule.extra.get("hint")), None)


def is_hint(text: str) -> bool:
    """True if a message only points to another error."""
    return any(rule.extra.get("hint") for rule in load_rule_set("wrappers").meeting(text))


@lru_cache(maxsize=1)
def _keywords() -> Any:
    return pattern("|".join(escape(word) for word in load("wrappers")["words"]))


def quoted_error(rule: Rule, record: ErrorRecord) -> list[ErrorRecord]:
    """Return the inner error if a wrapper's message quotes it; it may be a wrapper, too."""
    text = f"{record.type or ''}: {record.message}"
    found = rule.pattern.search(text)
    groups = found.groupdict() if found else {}
    if not groups.get("inner"):
        return []
    words = groups["inner"].strip()
    typed = _REPR.match(words) or _TYPED.match(words)
    kind, message = (typed.group(1), typed.group(2)) if typed else (None, words)
    message = message.partition("')")[0].partition('")')[0].strip("'\")( ")
    if not message:
        return []
    return [as_cause(replace(record, type=kind or record.type, message=message, frames=()))]


def wrapper_lines(
    lines: Sequence[LogLine], errors: Iterable[ErrorRecord]
) -> list[tuple[str, LogLine, Rule | None]]:
    """Find wrappers among plain log lines: those of the engine and of exception handlers."""
    known = {record.line.number: record for record in errors}
    found: list[tuple[str, LogLine, Rule | None]] = []
    for line, _ in first_hits(lines, _keywords()):
        text = line.text
        if line.number in known:
            text = _text_before(known[line.number])
        if text.lstrip().startswith(("raise ", "#")) or 'File "' in text:
            continue
        rule = wrapper_rule(text[:MAX_WRAPPER_CHARS])
        if rule is not None and not rule.extra.get("noise"):
            found.append((wrapper_message(rule, text), line, rule))
    return found + [(text, line, None) for text, line in _handler_lines(lines, set(known))]


def wrapper_message(rule: Rule, text: str) -> str:
    """Return a wrapper's message: only the rule's match if the rule covers a `part` of the line."""
    if rule.extra.get("part"):
        hit = rule.pattern.search(text)
        return str(hit.group()) if hit else text
    text = text.partition(", Traceback")[0].strip()[:MAX_WRAPPER_CHARS]
    if len(text) > MAX_PLAIN_CHARS:
        text = first_sentence(text)
    hit = rule.pattern.search(text) if len(text) > MAX_WRAPPER_MESSAGE_CHARS else None
    return str(hit.group()) if hit else text


def _text_before(record: ErrorRecord) -> str:
    """Return the handler's text before an error in the same line."""
    text = record.line.text
    if record.native:
        at = text.find(record.message)
    else:
        at = text.find(record.type or "\n") if record.rule == "traceback.inline" else -1
    return record.line.text[: max(at, 0)].rstrip(" :'\"")


def _handler_lines(lines: Sequence[LogLine], known: set[int]) -> Iterator[tuple[str, LogLine]]:
    """Yield the lines that handlers log directly above the traceback of a caught error."""
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
    return not text.startswith(_TRAILER_STARTS) and any(word in low for word in _FAILURE_WORDS)
