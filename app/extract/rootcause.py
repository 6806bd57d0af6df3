"""Which of a log's errors is the cause, which ones only wrap it.

In: `ErrorRecord`s in the order of the log. Out: `RootCause` with wrappers and other distinct errors.
An error is a wrapper by rule (`lists/wrappers.toml`), or because it was raised `from` another. Among
the rest the cause is sought in the innermost process that tells one (worker before engine core
before API server before client), there the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.loglines import LogLine, read_lines
from app.extract.patterns import pattern
from app.extract.rules import Rule, load_rules
from app.extract.sections import cut_lines
from app.extract.tracebacks import ErrorRecord, Frame, find_errors

_CUDA = pattern(r"^(?:\[[^\]]{1,60}\] ?)?(CUDA|HIP|NCCL) [Ee]rror(?: in)?: ?(.{3,300})")
_TRAILER = pattern(
    r" ?(?:CUDA kernel errors might|HIP kernel errors might|Compile with `|Search for `cuda"
    r"|For debugging consider"
    r"|GPU \d+ has a total|If reserved but|See documentation for|Exception raised from"
    r"|\(run with NCCL_DEBUG|Last error:| \[type=)"
)
_SENTENCE = pattern(r"[.!] +[A-Z`'\"]")
_TYPED = pattern(r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception)): (\S.{0,400})")
_REPR = pattern(r"^['\"]?(\w+(?:Error|Exception))\(['\"]?(.{3,300})")

COMPILER_ERRORS = frozenset({"InductorError", "LoweringException", "BackendCompilerFailed"})
"""torch.compile's own classes; their message begins with the error that was raised inside."""
MAX_OTHER_ERRORS = 8
WEAK_RULES = frozenset({"native.what", "native.no_shm_block", "native.pip_build", "native.said_gpu_error"})
"""Native lines that repeat or only hint at an error another line tells better."""
MIN_SENTENCE_CHARS = 24
"""A shorter first sentence ("CUDA out of memory.") needs its second to be distinctive."""
MAX_WRAPPERS = 12
MAX_WRAPPER_CHARS = 2_000


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


@dataclass(frozen=True, slots=True)
class CauseChain:
    """The cause, the lines that only wrap it, and further distinct errors."""

    cause: Cause | None
    wrappers: tuple[tuple[str, LogLine], ...] = ()
    other: tuple[Cause, ...] = ()


def find_cause(errors: Sequence[ErrorRecord], lines: Sequence[LogLine]) -> CauseChain:
    """Sort a log's errors into cause, wrappers and others."""
    wrappers: list[tuple[str, LogLine]] = []
    candidates: list[tuple[tuple[int, ...], Cause]] = []
    inner: list[Cause] = []
    for position, record in enumerate(errors):
        rule = wrapper_rule(f"{record.type or ''}: {record.message}")
        if rule is not None:
            if not rule.extra.get("noise"):
                wrappers.append((record.message or record.line.text.strip(), record.line))
                inner.extend(_inner(rule, record))
            continue
        outer = record.chain == "caused_by" and _previous_is_cause(errors, position)
        if outer:
            wrappers.append((record.message, record.line))
            continue
        candidates.append((_order(record, errors, position), as_cause(record)))
    candidates.sort(key=lambda item: item[0])
    causes = _with_message(_distinct([cause for _, cause in candidates] or inner))
    wrappers.extend(_wrapper_lines(lines, {line.number for _, line in wrappers}))
    unique = {text: (text, line) for text, line in sorted(wrappers, key=lambda item: item[1].number)}
    return CauseChain(
        causes[0] if causes else None,
        tuple(unique.values())[:MAX_WRAPPERS],
        tuple(causes[1 : 1 + MAX_OTHER_ERRORS]),
    )


def read_errors(log: str) -> tuple[tuple[LogLine, ...], CauseChain]:
    """The lines of a log, unwrapped, and its errors sorted into cause, wrappers and others."""
    lines = tuple(read_lines(cut_lines(log)))
    return lines, find_cause(find_errors(lines), lines)


def wrapper_rule(text: str) -> Rule | None:
    """The rule by which an error only wraps another, or None."""
    if not _anyone().search(text):
        return None
    return next((rule for rule in load_rules("wrappers") if rule.pattern.search(text)), None)


@lru_cache(maxsize=1)
def _anyone() -> Any:
    """All wrapper rules as one pattern: most lines fit none of them."""
    return pattern("|".join(f"(?:{row['pattern']})" for row in _unnamed_rules()))


def _unnamed_rules() -> list[dict[str, str]]:
    return [{"pattern": row["pattern"].replace("(?P<inner>", "(?:")} for row in load("wrappers")["rule"]]


def _inner(rule: Rule, record: ErrorRecord) -> list[Cause]:
    """The real error, where a wrapper's own words quote it."""
    text = f"{record.type or ''}: {record.message}"
    found = rule.pattern.search(text)
    groups = found.groupdict() if found else {}
    if not groups.get("inner"):
        return []
    words = groups["inner"].strip()
    typed = _REPR.match(words)
    kind, message = (typed.group(1), typed.group(2)) if typed else (None, words)
    message = message.strip("'\")( ")
    if not message or wrapper_rule(message) is not None:
        return []
    return [as_cause(replace(record, type=kind or record.type, message=message, frames=()))]


def _previous_is_cause(errors: Sequence[ErrorRecord], position: int) -> bool:
    """Whether the error this one was raised from stands in the log and is itself no noise."""
    here = errors[position]
    for record in reversed(errors[:position]):
        if record.line.process == here.line.process:
            rule = wrapper_rule(f"{record.type or ''}: {record.message}")
            return rule is None or not rule.extra.get("noise")
    return False


def _order(record: ErrorRecord, errors: Sequence[ErrorRecord], position: int) -> tuple[int, ...]:
    """Sort key of a candidate: what stands first is the cause."""
    weak = record.native and record.rule in WEAK_RULES
    backed = bool(record.frames) or record.native
    later = record.chain == "during" and _previous_is_cause(errors, position)
    told_quietly = record.line.level in {"INFO", "DEBUG", "WARNING", "WARN"}
    quiet = told_quietly or (record.type or "").endswith("Warning")
    return (quiet, weak, not backed, _process_depth(record), later, record.line.number)


def _process_depth(record: ErrorRecord) -> int:
    """0 for the innermost process: workers know the cause, the engine core hears of it, clients last."""
    name = record.line.process
    if "Worker" in name or name.startswith("rank"):
        return 0
    if record.native and not name and (record.type or "").endswith(" error"):
        return 0  # a device fault that a library prints itself bears no prefix; it is a worker's
    if "EngineCore" in name:
        return 1
    if (record.type or "").startswith("openai.") or "Error code: " in record.message:
        return 4
    return 3 if name.startswith(("APIServer", "ApiServer")) else 2


def as_cause(record: ErrorRecord) -> Cause:
    """A record as it is shown: short type, message without what torch appends to every error."""
    kind = (record.type or "").rsplit(".", 1)[-1] or None
    message = record.message
    inner = _TYPED.match(message) if kind in COMPILER_ERRORS else None
    if inner:
        kind, message = inner.group(1), inner.group(2)
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
        type=kind, message=first_sentence(message.strip()),
        frame=record.frame_hint or telling_frame(record.frames), frames=record.frames,
        line=record.line, native=record.native, rule=record.rule,
    )  # fmt: skip


def telling_frame(frames: Sequence[Frame]) -> str | None:
    """The innermost place that is no plumbing: file.py:function."""
    telling = next((frame for frame in reversed(frames) if not is_plumbing(frame)), None)
    if telling is None and frames:
        telling = next((f for f in reversed(frames) if "<frozen" not in f.path), frames[-1])
    return telling.place if telling else None


def is_plumbing(frame: Frame) -> bool:
    """Whether a frame stands in every traceback of its kind and tells nothing."""
    names = load("plumbing")
    path = frame.path.replace("\\", "/")
    if "/lib/python3" in path and "-packages/" not in path:
        return True  # the standard library
    return any(part in path for part in names["paths"]) or frame.function in names["functions"]


def _distinct(causes: Sequence[Cause]) -> list[Cause]:
    """Each error once: ranks and second copies repeat it."""
    seen: set[tuple[str | None, str]] = set()
    kept: list[Cause] = []
    for cause in causes:
        key = (cause.type, _without_digits(cause.message))
        if key not in seen:
            seen.add(key)
            kept.append(cause)
    return kept


def _with_message(causes: list[Cause]) -> list[Cause]:
    """A bare cause takes the words that another line of the log gives for the same type."""
    if not causes or causes[0].message:
        return causes
    said = next((c for c in causes[1:] if c.type == causes[0].type and c.message and not c.frames), None)
    if said is None:
        return causes
    first = replace(causes[0], message=said.message, line=said.line)
    return [first, *(c for c in causes[1:] if c is not said)]


def first_sentence(message: str) -> str:
    """A message without its advice: the first sentence, if it is long enough to tell."""
    for found in _SENTENCE.finditer(message):
        if found.start() + 1 >= MIN_SENTENCE_CHARS:
            return message[: found.start() + 1]
    return message


def _without_digits(text: str) -> str:
    return text.translate(_DIGITS)[:160]


_DIGITS = str.maketrans("", "", "0123456789")


def _wrapper_lines(lines: Sequence[LogLine], known: set[int]) -> list[tuple[str, LogLine]]:
    """Wrapper lines that are no exception: plain ERROR lines of the engine's own handlers."""
    found = []
    for line in lines:
        text = line.text
        speaks = "Engine" in text or "Worker" in text or "RuntimeError: " in text
        if line.number in known or not (speaks or line.level in {"ERROR", "CRITICAL"}):
            continue
        if len(text) < MAX_WRAPPER_CHARS and 'File "' not in text:
            rule = wrapper_rule(text)
            if rule is not None and not rule.extra.get("noise"):
                found.append((text.strip(), line))
    return found
