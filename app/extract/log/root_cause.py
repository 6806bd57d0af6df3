"""Find the root cause among a log's errors.

In: `ErrorRecord`s in the order of the log. Out: `CauseChain` with cause, wrappers and other distinct errors.
An error is a wrapper by rule (`lists/wrappers.toml`), or because it was raised `from` another. Of the others,
the root cause is the first error of the innermost process (worker before engine core before API server before
client). If there are only wrappers, the innermost one is `apparent`: shown to the user, but never used for a
signature.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from app.extract.log.course import DEATH, UNKNOWN_COURSE, Course, Fate, Outcome
from app.extract.log.frames import decisive_frame, is_plumbing
from app.extract.log.lines import LOUD, LogLine, read_numbered
from app.extract.log.messages import (
    ONLY_WRAPPER,
    as_cause,
    borrow_message,
    first_sentence,
    is_hint,
    quoted_error,
    resolve_missing_operator,
    resolve_nccl_error,
    with_frames_of,
    wrapper_lines,
    wrapper_rule,
)
from app.extract.log.process_stream import ANSWER, CUT, ErrorRecord
from app.extract.log.sampling import informative_lines
from app.extract.log.tracebacks import find_errors
from app.extract.rules.patterns import pattern

MAX_OTHER_ERRORS = 8
MAX_CHAIN = 16
"""Maximum number of following errors searched for outer errors of the same chain."""
MAX_WRAPPERS = 20
MAX_REMOTE_LINES = 60
ERROR_LINE = "error_line.only"
MIN_TITLE_WORDS = 3
WEAK_HINT = 2
"""`weak` value of an error that only hints at another."""
SHUTDOWN = "shutdown"
"""The function of vLLM's processes in which only consequences of an earlier error are raised."""
ASSERTIONS = frozenset(["native.device_assert", "native.hip_assert"])
ASSERTED = "device-side assert triggered"
"""Reported, at any later call, after a kernel printed its failed assertion."""

OPEN, REQUEST, MISSING = 0, 1, 9
"""Ranks of candidates: the program did not continue; only a request failed; no candidate."""
RANKS: dict[Fate, int] = {"open": OPEN, "request": REQUEST, "survived": 2, "stopping": 3}
OUTCOMES: dict[int, Outcome] = {OPEN: "stopped", REQUEST: "refused", 2: "none", 3: "none"}
_WORD = pattern(r"[\w.]{2,}")
_POSITION = pattern(r"\b(?:line|column|char|position|byte|offset) \d+|\bindex out of (?:range|bounds)\b")
_DENIED = pattern(r"\b40[134] Client Error\b|\bClient error '40[134] ")
"""HTTP libraries' messages for a resource that is missing or requires authorisation."""
_NAMED = pattern(r"['\"\x60(]\S{3,}['\"\x60)]|/\S+/\S+")
_DIGITS = str.maketrans("", "", "0123456789")


@dataclass(frozen=True, slots=True)
class CauseChain:
    """The root cause, its wrappers, other distinct errors, and the outcome of the run.

    `chain` contains the errors raised on top of the cause, the nearest first: the inner error names the
    fault, an outer one often the file. `apparent` stands in for a cause that the log does not show; `place`
    is the last frame of a truncated traceback.
    """

    cause: ErrorRecord | None
    wrappers: tuple[tuple[str, LogLine], ...] = ()
    other: tuple[ErrorRecord, ...] = ()
    chain: tuple[ErrorRecord, ...] = ()
    apparent: ErrorRecord | None = None
    place: str | None = None
    outcome: Outcome = "none"


@dataclass(slots=True)
class _Parts:
    """A log's errors by role."""

    candidates: list[int] = field(default_factory=list)
    wrappers: list[tuple[str, LogLine]] = field(default_factory=list)
    inner: list[ErrorRecord] = field(default_factory=list)
    outer: list[ErrorRecord] = field(default_factory=list)
    deaths: list[ErrorRecord] = field(default_factory=list)


def find_cause(
    errors: Sequence[ErrorRecord], lines: Sequence[LogLine], course: Course = UNKNOWN_COURSE
) -> CauseChain:
    """Divide a log's errors into cause, wrappers and others, and determine the outcome.

    Args:
        course: of the lines if they are one log; unknown for a collection of excerpts.
    """
    is_asserted = any(item.rule in ASSERTIONS for item in errors)
    records = [
        _mark_hint(item, is_asserted) for item in errors if item.rule != CUT and not _is_tool_error(item)
    ]
    parts = _sort(records, lines, course)
    ranked = _ranked(records, parts, course)
    rank = ranked[0][0] if ranked else MISSING
    causes = _distinct([cause for _, cause in ranked])
    causes = resolve_missing_operator(resolve_nccl_error(borrow_message(causes)), lines)
    causes, repeated = _split_hints(causes)
    wrappers = sorted((*parts.wrappers, *repeated), key=lambda item: item[1].number)
    unique = {text: (text, line) for text, line in wrappers}
    place = next((decisive_frame(record.frames) for record in errors if record.rule == CUT), None)
    # the line that introduces a truncated traceback says nothing about its error, unlike a build's last line
    plain = [item for item in unique.values() if not place or _is_wrapper_of(item[0], "hollow")]
    apparent = None
    if rank == MISSING or (rank > OPEN and course.ended):
        apparent = _apparent(parts, records, plain, lines, course)
    cause = causes[0] if causes and not apparent else None
    others = causes[1:] if cause else causes
    outcome = _outcome_of(rank, unique, course) if cause else "stopped"
    if rank > REQUEST and (answer := _response_error(records, course)) is not None:
        cause, apparent, others, outcome = answer, None, [], "refused"
    refusal = course.refusal(lines) if outcome == "refused" or not (cause or apparent) else None
    if refusal is not None and (cause is None or refusal.message.endswith(cause.message)):
        cause, apparent, outcome = None, refusal, "refused"
    chain = _raised_on_top(cause, records) if cause else ()
    if cause is not None and (outer := _outer_cause(cause, chain)) is not None:
        cause, chain = outer, (cause, *(item for item in chain if item is not outer))
    return CauseChain(
        cause,
        tuple(unique.values())[:MAX_WRAPPERS],
        tuple(others[:MAX_OTHER_ERRORS]),
        chain,
        apparent,
        place,
        outcome if cause or apparent else "none",
    )


def _response_error(records: Iterable[ErrorRecord], course: Course) -> ErrorRecord | None:
    """Return the first error that was sent as the response to a request, whatever its logged status."""
    return next((item for item in records if item.rule == ANSWER and course.fate(item) == "request"), None)


def _outcome_of(rank: int, wrappers: Iterable[str], course: Course) -> Outcome:
    """Return the outcome; a program that reports only a request's error, and no end, keeps running."""
    is_request = not course.ended and any(_is_wrapper_of(text, "request") for text in wrappers)
    return "refused" if OUTCOMES[rank] == "stopped" and is_request else OUTCOMES[rank]


def _sort(records: Sequence[ErrorRecord], lines: Sequence[LogLine], course: Course) -> _Parts:
    """Separate candidates for the cause from errors that only report another."""
    parts = _Parts()
    for position, record in enumerate(records):
        text = record.message or record.line.text.strip()
        rule = wrapper_rule(f"{record.type or ''}: {record.message}")
        if rule is not None and not rule.extra.get("asked"):
            if not rule.extra.get("noise"):
                parts.wrappers.append((text, record.line))
                _sort_quoted(quoted_error(rule, record), parts)
            if not rule.extra.get("spoken"):
                parts.outer.append(record)
            if "death" in rule.extra:
                parts.deaths.append(replace(as_cause(record), rule=DEATH, weak=rule["death"]))
        elif record.chain == "caused_by" and _previous_is_cause(records, position):
            parts.wrappers.append((text, record.line))
        else:
            parts.candidates.append(position)
    for text, line, rule in wrapper_lines(lines, records):
        parts.wrappers.append((text, line))
        if rule is not None and "death" in rule.extra:
            parts.deaths.append(ErrorRecord(None, text, line, rule=DEATH, weak=rule["death"]))
    parts.deaths = [death for death in parts.deaths if course.fate(death) == "open"]
    return parts


def _sort_quoted(quoted: Iterable[ErrorRecord], parts: _Parts) -> None:
    """Sort the errors that a wrapper's message quotes; a quoted wrapper counts only if it reports a death."""
    for inner in quoted:
        rule = wrapper_rule(inner.message)
        if rule is None:
            parts.inner.append(inner)
        elif "death" in rule.extra:
            parts.deaths.append(replace(inner, rule=DEATH, weak=rule.extra["death"]))


def _ranked(records: Sequence[ErrorRecord], parts: _Parts, course: Course) -> list[tuple[int, ErrorRecord]]:
    """Return the candidates with their ranks, the most likely cause first."""
    keyed = [
        ((RANKS[_fate(records, at, course)], *_sort_key(records[at], records, at)), at)
        for at in parts.candidates
    ]
    found = [(key[0], _with_outer_place(as_cause(records[at]), records, at)) for key, at in sorted(keyed)]
    if found and found[0][0] == OPEN:
        return found
    return [*((OPEN, item) for item in parts.inner), *found]


def _fate(errors: Sequence[ErrorRecord], position: int, course: Course) -> Fate:
    """Return what followed an error; `open` also if an error chained to it ended the program."""
    record = errors[position]
    after = [item for item in errors[position + 1 :] if item.line.process == record.line.process]
    chained = itertools.takewhile(lambda item: bool(item.chain), after[:MAX_CHAIN])
    return "open" if any(course.ends_program(item) for item in chained) else course.fate(record)


def _raised_on_top(cause: ErrorRecord, errors: Sequence[ErrorRecord]) -> tuple[ErrorRecord, ...]:
    """Return the errors raised from the cause or while it was handled, the nearest first."""
    after = [item for item in errors if item.line.process == cause.line.process]
    after = [item for item in after if item.line.number > cause.line.number][:MAX_CHAIN]
    chained = itertools.takewhile(lambda item: bool(item.chain), after)
    named = [item for item in chained if wrapper_rule(f"{item.type or ''}: {item.message}") is None]
    return tuple(_distinct([as_cause(item) for item in named]))


def _outer_cause(inner: ErrorRecord, chain: Sequence[ErrorRecord]) -> ErrorRecord | None:
    """Return the outer error if it is more specific, as for a denied download; else None."""
    if _DENIED.search(inner.message):
        return next((item for item in chain if not _DENIED.search(item.message)), None)
    return chain[0] if chain and _adds_subject(chain[0], inner) else None


def _adds_subject(outer: ErrorRecord, inner: ErrorRecord) -> bool:
    """True if the inner message is a bare word or position and the outer one says what it refers to."""
    words = inner.message.strip("'\"").split()
    if len(outer.message.split()) < MIN_TITLE_WORDS or not words:
        return False
    repeats = len(words) < MIN_TITLE_WORDS and " ".join(words) in outer.message
    return repeats or (
        _POSITION.search(inner.message) is not None and _NAMED.search(outer.message) is not None
    )


def _mark_hint(record: ErrorRecord, is_asserted: bool) -> ErrorRecord:
    """Mark an error as weak if its message only points to another error, or repeats a failed assertion."""
    is_late = is_asserted and ASSERTED in record.message
    return replace(record, weak=WEAK_HINT) if is_late or is_hint(record.message) else record


def _is_tool_error(record: ErrorRecord) -> bool:
    """True if an error was raised in `collect_env.py` or in a debugger."""
    frames = record.frames
    if not frames:
        return False
    if frames[0].file == "collect_env.py":
        return True
    return all("pydevd" in frame.path or "debugpy" in frame.path for frame in frames)


def read_errors(log: str) -> tuple[tuple[LogLine, ...], CauseChain]:
    """Return the lines of a log without prefixes, and its errors divided into cause, wrappers and others."""
    lines = tuple(read_numbered(informative_lines(log)))
    return lines, find_cause(find_errors(lines), lines, Course(lines))


def title_first(errors: CauseChain, title: str) -> CauseChain:
    """Make the error that the title names the cause."""
    if errors.cause is None or not errors.other or _is_named_in(title, errors.cause):
        return errors
    backed = [item for item in errors.other if item.frames or item.native]
    named = next((item for item in backed if _is_named_in(title, item)), None)
    if named is None:
        return errors
    others = (errors.cause, *(item for item in errors.other if item is not named))
    return replace(errors, cause=named, other=others)


def _is_named_in(title: str, cause: ErrorRecord) -> bool:
    words = {word.lower() for word in _WORD.findall(cause.message)}
    title_words = {word.lower() for word in _WORD.findall(title)}
    return len(words) >= MIN_TITLE_WORDS and len(words & title_words) >= 0.8 * len(words)


def _apparent(
    parts: _Parts,
    records: Sequence[ErrorRecord],
    wrappers: Sequence[tuple[str, LogLine]],
    lines: Sequence[LogLine],
    course: Course,
) -> ErrorRecord | None:
    """Choose a stand-in for the cause if there are only wrappers: a death, an exception or a plain line."""
    if parts.deaths:
        return min(parts.deaths, key=lambda item: (item.weak, item.line.number))
    outer = [record for record in parts.outer if course.fate(record) == "open"]
    if outer:
        cause = _with_outer_place(as_cause(outer[0]), records, records.index(outer[0]))
        return replace(cause, rule=ONLY_WRAPPER)
    open_lines = [
        (text, line)
        for text, line in wrappers
        if course.fate_of_line(line) == "open" and not _is_wrapper_of(text, "death")
    ]
    if open_lines:
        text, line = min(open_lines, key=lambda item: item[1].number)
        return ErrorRecord(None, first_sentence(text), line, rule=ONLY_WRAPPER)
    for line in lines:
        message = line.text.strip() if line.level in LOUD and _is_message(line.text) else ""
        if message and wrapper_rule(message) is None and course.fate_of_line(line) == "open":
            return ErrorRecord(None, first_sentence(message[:300]), line, rule=ERROR_LINE)
    return None


def _is_wrapper_of(text: str, kind: str) -> bool:
    """True if a line is a wrapper of the kind `hollow`, `request` or `death`."""
    rule = wrapper_rule(text)
    return rule is not None and kind in rule.extra


def _is_message(text: str) -> bool:
    """True if a line logged as an error is a message, not code, a frame or a list."""
    begins = text[:1].isupper() or text[:1] in {"[", "'"}
    is_code = text.startswith('File "') or text.rstrip()[-1:] in ":,({[="
    return len(text) > 12 and " " in text and begins and not is_code


def _split_hints(causes: list[ErrorRecord]) -> tuple[list[ErrorRecord], list[tuple[str, LogLine]]]:
    """Separate the causes that only hint at the first one; return them as wrappers."""
    if not causes or causes[0].weak == WEAK_HINT:
        return causes, []
    hints = [cause for cause in causes if cause.weak == WEAK_HINT]
    kept = [cause for cause in causes if cause.weak != WEAK_HINT]
    place = next((cause for cause in hints if cause.frame), None)
    if place is not None and kept[0].native and kept[0].frame is None:
        kept[0] = with_frames_of(kept[0], place)
    return kept, [(cause.message, cause.line) for cause in hints if cause.message]


def _previous_is_cause(errors: Sequence[ErrorRecord], position: int) -> bool:
    """True if the error that this one was raised from is in the log and not noise."""
    here = errors[position]
    for record in reversed(errors[:position]):
        if record.line.process == here.line.process:
            rule = wrapper_rule(f"{record.type or ''}: {record.message}")
            return rule is None or not rule.extra.get("noise")
    return False


def _sort_key(record: ErrorRecord, errors: Sequence[ErrorRecord], position: int) -> tuple[int, ...]:
    """Return the sort key of a candidate; the lowest is the cause."""
    backed = bool(record.frames) or record.native or _is_chained_to_next(record, errors, position)
    outside = bool(record.frames) and not record.native and not _has_vllm_frame(errors, position)
    warns = (record.type or "").endswith("Warning")
    ends = any(frame.function == SHUTDOWN for frame in record.frames)
    return (record.weak, warns, ends, not backed, _process_depth(record), outside, record.line.number)


def _is_chained_to_next(record: ErrorRecord, errors: Sequence[ErrorRecord], position: int) -> bool:
    """True if the next error was chained to this one, of whose traceback only the last line is left."""
    after = errors[position + 1 : position + 2]
    led = record.rule == "traceback.terminal" and bool(after) and bool(after[0].chain and after[0].frames)
    return led and after[0].line.process == record.line.process


def _has_vllm_frame(errors: Sequence[ErrorRecord], position: int) -> bool:
    """True if an error, or one chained to it, has a frame in vLLM's code."""
    process = errors[position].line.process
    for at in range(position, min(position + MAX_CHAIN, len(errors))):
        record = errors[at]
        if record.line.process != process:
            continue
        if at > position and not record.chain:
            return False
        if any("vllm" in frame.path for frame in record.frames):
            return True
    return False


def _with_outer_place(cause: ErrorRecord, errors: Sequence[ErrorRecord], position: int) -> ErrorRecord:
    """Set the place of an error with library frames only to the frame that called the library, if known."""
    if cause.native or not cause.frames or not all(is_plumbing(frame) for frame in cause.frames):
        return cause
    for record in errors[position + 1 : position + MAX_CHAIN]:
        if record.line.process == cause.line.process:
            decisive = [frame for frame in record.frames if not is_plumbing(frame)]
            if record.chain and decisive:
                return replace(cause, frame=decisive[-1].place)
            break
    if position and _is_remote(errors[position - 1], cause):
        decisive = [frame for frame in errors[position - 1].frames if not is_plumbing(frame)]
        return replace(cause, frame=decisive[-1].place) if decisive else cause
    return cause


def _is_remote(above: ErrorRecord, cause: ErrorRecord) -> bool:
    """True if the error above is Ray's wrapper in which this remote error is printed."""
    near = cause.line.number - above.line.number <= MAX_REMOTE_LINES
    return near and above.line.process == cause.line.process and above.message.startswith("ray::")


def _process_depth(record: ErrorRecord) -> int:
    """Return the distance of a process from the worker (0), where root causes occur."""
    name = record.line.process
    if "Worker" in name or name.startswith("rank"):
        return 0
    if "EngineCore" in name:
        return 1
    return 3 if name.startswith(("APIServer", "ApiServer")) else 2


def _distinct(causes: Sequence[ErrorRecord]) -> list[ErrorRecord]:
    """Deduplicate errors, which several ranks may print."""
    kept: dict[tuple[str | None, str], ErrorRecord] = {}
    for cause in causes:
        key = (cause.type, cause.message.translate(_DIGITS)[:160])
        first = kept.setdefault(key, cause)
        if first is not cause and _is_library_only(first) and not _is_library_only(cause):
            kept[key] = with_frames_of(first, cause)
    return list(kept.values())


def _is_library_only(cause: ErrorRecord) -> bool:
    """True if all of an error's frames are plumbing."""
    return bool(cause.frames) and all(is_plumbing(frame) for frame in cause.frames)
