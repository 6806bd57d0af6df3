"""An error as it is shown: short class, its own words, the innermost telling place.

In: `ErrorRecord`s. Out: `Cause`s; what torch, NCCL and the compiler append or wrap is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.extract.log.frames import Frame, telling_frame
from app.extract.log.lines import LogLine
from app.extract.log.tracebacks import ErrorRecord
from app.extract.rules.patterns import pattern

ONLY_WRAPPER = "wrapper.only"
"""The rule of what stands for a cause that is not shown."""
COMPILER_ERRORS = frozenset(
    {"InductorError", "LoweringException", "BackendCompilerFailed", "InternalTorchDynamoError"}
)
"""torch.compile's own classes; their message begins with the error that was raised inside."""
MIN_SENTENCE_CHARS = 24
"""A shorter first sentence ("CUDA out of memory.") needs its second to be distinctive."""
MIN_CLAUSE_CHARS = 60
MAX_TOLD_CHARS = 160
"""A longer message is told up to its last clause within this length."""
MAX_COMMAND_CHARS = 160
"""A failed command is told by its beginning; a build's runs to thousands of letters."""

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
_VALUE_ERROR = pattern(r"['\"]msg\\?['\"]: \\?['\"](?:Value error|Assertion failed), ([^'\"\\]{6,300})")
_LOGGED_AT = pattern(r"^\[\d\d:\d\d:\d\d\] (?:[^\s:]{1,200}/)?([^\s:/]{1,80}:\d+): ")
"""A library's own log prefix within its message."""
"""A server's words in its client's error."""
_SENTENCE = pattern(r"[.!?] +[A-Z`'\"]|(?:\w{3}|[\d'\"`)\]])[.!?] +(?:[a-z]\w*=|[a-z({\[<])|[.!?] - ")
_ABBREVIATION = (" etc.", " resp.", " approx.", " vs.", " fig.", " cf.")
_DUMP = pattern(r"[ :,(=]+(?:\{|\[[^\]]{40}|\w*Namespace\(|\w*Config\(|<[\w.]+ object at )")
"""Where a message begins to print a whole object."""
_CLAUSE = pattern(r"[,;] | - | \(")
_TYPED = pattern(r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception)): (\S.{0,400})")


@dataclass(frozen=True, slots=True)
class Cause:
    """The root cause: `type` without module path, `message` verbatim, `frame` as file:function."""

    type: str | None
    message: str
    frame: str | None
    frames: tuple[Frame, ...]
    line: LogLine
    native: bool
    rule: str
    weak: int = 0

    @property
    def is_wrapper(self) -> bool:
        """Whether these are only the outer words of an error that the text does not show."""
        return self.rule == ONLY_WRAPPER


def as_cause(record: ErrorRecord) -> Cause:
    """A record as it is shown: short type, message without what torch appends to every error."""
    kind = (record.type or "").rsplit(".", 1)[-1] or None
    message, place = record.message, record.frame_hint
    inner = _TYPED.match(message) if kind in COMPILER_ERRORS else None
    if inner:
        kind, message = inner.group(1), inner.group(2)
    answered = _ANSWERED.search(message) if "Error code: " in message else None
    if answered:
        told = _VALUE_ERROR.search(message)
        message = told.group(1) if told else next(group for group in answered.groups() if group)
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
    return Cause(
        type=kind,
        message=_short_command(first_sentence(message.strip())),
        frame=place or telling_frame(record.frames),
        frames=record.frames,
        line=record.line,
        native=record.native,
        rule=record.rule,
        weak=record.weak,
    )


def called_from(cause: Cause, other: Cause) -> Cause:
    """The same cause at another's place."""
    return replace(cause, frame=other.frame, frames=other.frames)


def first_sentence(message: str) -> str:
    """A message without its advice and dumps: the first sentence, if it is long enough to tell."""
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
    ends = [found.start() for found in _CLAUSE.finditer(message[: MAX_TOLD_CHARS + 1])]
    if len(message) > MAX_TOLD_CHARS and ends and ends[-1] >= MIN_CLAUSE_CHARS:
        return message[: ends[-1]]
    return message


def _short_command(message: str) -> str:
    if len(message) <= MAX_COMMAND_CHARS or not message.startswith("Command "):
        return message
    options = message.find(", '-D")
    end = options if 0 < options < MAX_COMMAND_CHARS else message.rfind(", ", 0, MAX_COMMAND_CHARS)
    return message[:end] if end > 0 else message[:MAX_COMMAND_CHARS]


def in_words(causes: list[Cause]) -> list[Cause]:
    """A fault told by its signal's number alone takes the words that the interpreter has for it."""
    if not causes or causes[0].rule != "native.signal_received":
        return causes
    said = next((cause for cause in causes[1:] if cause.type == causes[0].type), None)
    if said is None:
        return causes
    first = said if said.frame else called_from(said, causes[0])
    return [first, *(cause for cause in causes[1:] if cause is not said)]


def with_message(causes: list[Cause]) -> list[Cause]:
    """A bare cause takes the words that another line of the log gives for the same type."""
    if not causes or causes[0].message:
        return causes
    own = causes[0].type == "AssertionError"  # each bare assertion is one of its own
    same = [c for c in causes[1:] if c.type == causes[0].type and c.message]
    said = next((c for c in same if not (own and c.frames)), None)
    if said is None:
        return causes
    first = replace(causes[0], message=said.message, line=said.line)
    return [first, *(c for c in causes[1:] if c is not said)]


def behind_nccl(causes: list[Cause]) -> list[Cause]:
    """The CUDA error of which NCCL only says that it met one, at the place that called NCCL."""
    if not causes:
        return causes
    if causes[0].rule == "native.nccl_cuda_failure":
        caller = next((c for c in causes[1:] if c.frames and "nccl" in c.frames[-1].path), None)
        return [called_from(causes[0], caller), *causes[1:]] if caller else causes
    if "unhandled cuda error" not in causes[0].message:
        return causes
    fault = next((c for c in causes[1:] if c.type == "CUDA error" and c.message), None)
    if fault is None:
        return causes
    first = fault if fault.frame else called_from(fault, causes[0])
    return [first, *(c for c in causes if c is not fault)]
