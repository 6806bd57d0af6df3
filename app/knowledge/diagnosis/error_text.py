"""An error's message as printed in the log: its lines and sentences.

Quotes are taken from the masked log.
"""

from collections.abc import Iterable, Iterator

from app.extract.log.lines import LogLine
from app.extract.log.messages import ONLY_WRAPPER
from app.extract.log.process_stream import ErrorRecord
from app.extract.reader import LogReading
from app.extract.redact import redact
from app.extract.rules.patterns import pattern

LINES_ABOVE, LINES_BELOW = 3, 12
"""Lines around an error's own that may belong to its message: invalid fields, a paragraph of advice."""
MIN_MESSAGE_CHARS = 20
MAX_MESSAGE_CHARS = 160
"""Longer messages are shown without their list of legal values."""
MAX_FRAGMENT_CHARS = 40
"""Length below which the rest of a sentence before legal values ("Must be one of") is dropped."""
FOUND_BY_CHARS = 60
"""Prefix of a message by which it is located in its line."""

CHOICES = pattern(
    r"(?i)choose from|chose from|(?:must|should) be (?:one )?of|expected one of|input should be"
    r"|\b(?:supported|valid|available|allowed|known|registered|possible) "
    r"(?:\w+ ){0,3}(?:belonging |are|is|:)|\b(?:supported|available|valid|options)(?:\w| )*:|not in \["
)
"""Introduces a list of legal values."""
ARGUMENT = pattern(r"argument (?:-{1,2}[\w-]+(?:, ?|/)){0,3}(--[a-z][\w-]*)")
"""The argument whose value is invalid."""
_FIELD = pattern(r"^\s*([a-z][\w.]{0,80})\s*$")
_NEEDS_FIELD = pattern(r"^(?:Input should|Field required|Extra inputs|String should|List should)")
_NEW_RECORD = pattern(
    r"^(?:Traceback \(most|The above exception|During handling|For further information| *File \"|raise )"
)
_SENTENCE_END = pattern(r"[.!?;]\)?(?:\s+[A-Z`'\"(\-]|Please\b)|\n")
_ABBREVIATIONS = ("e.g.", "i.e.", "etc.", "vs.", "cf.", "resp.")
_TRAILER = pattern(
    r" ?\[type=[a-z_]+, input_value=|, input_type="
    r"|\\?['\"], ?\\?['\"](?:type|param|code|object|input|loc|ctx)\b"
)
_PREFIX = pattern(r"^(?:Error code: \d{3} - )?(?:Value error, |Assertion failed, )?")
_LABEL = pattern(
    r"^(?:\{.{0,300}['\"](?:msg|message)\\*['\"]: ?\\*)?['\"]?(?:[\w.]{1,80}(?:Error|Exception): ['\"]?)?"
    r"(?:Value error, |Assertion failed, )?"
)
_INCOMPLETE = pattern(r"(?:[:,(]|\b(?:the|a|an|of|to|in|from|with|and|or|for|by|be|is|are|that|at|on))$")


def message_lines(reading: LogReading, record: ErrorRecord | None = None) -> list[LogLine]:
    """Return the lines of an error's message, from its own line on; by default the cause's."""
    record = record or reading.errors.cause or reading.errors.apparent
    if record is None:
        return []
    at = next((at for at, line in enumerate(reading.lines) if line.number == record.line.number), None)
    if at is None:
        return [record.line]
    found = [reading.lines[at]]
    for line in reading.lines[at + 1 : at + 1 + LINES_BELOW]:
        is_other = line.process != found[0].process or (line.level and line.level != found[0].level)
        if is_other or _NEW_RECORD.search(line.text):
            break
        found.append(line)
    return found


def lines_above(reading: LogReading) -> list[LogLine]:
    """Return the lines just above the cause, where a validation error names the argument."""
    record = reading.errors.cause or reading.errors.apparent
    if record is None:
        return []
    number = record.line.number
    near = (line for line in reading.lines if number - LINES_ABOVE <= line.number < number)
    return [line for line in near if line.process == record.line.process]


def words_of_cause(reading: LogReading) -> tuple[str, LogLine] | None:
    """Return the cause's message and line; for an assertion without a message, the asserted code.

    None if the log shows only that there was an error.
    """
    record = reading.errors.cause or reading.errors.apparent
    if record is None or record.rule == ONLY_WRAPPER:
        return None
    if not record.message:
        for line in reversed(lines_above(reading)):
            if line.text.lstrip().startswith("assert "):
                return line.text.strip(), line
    return record.message, record.line


def masked_part(text: str, line: LogLine, masked_log: str) -> str:
    """Return part of a line from the masked log: text before the part may be what marks it as a secret."""
    at = line.raw.find(text)
    if at < 0:
        return redact(text, private=True).text
    return masked_log[line.start + at : line.start + at + len(text)]


def masked_text(line: LogLine, masked_log: str) -> str:
    """Return a line's text from the masked log."""
    return masked_part(line.text, line, masked_log)


def sentences(text: str) -> Iterator[str]:
    """Yield a message's sentences, without error types and text added by pydantic or an HTTP response."""
    start = 0
    for end in [*(found.start() + 1 for found in _SENTENCE_END.finditer(text)), len(text)]:
        piece = text[start:end].strip()
        if end < len(text) and piece.endswith(_ABBREVIATIONS):
            continue
        start = end
        trailer = _TRAILER.search(piece)
        piece = piece[: trailer.start()].strip() if trailer else piece
        if piece := piece[_LABEL.match(piece).end() :]:
            yield piece


def whole_message(reading: LogReading, record: ErrorRecord, message: str, masked_log: str) -> str:
    """Return a message with the rest of its line; if it is long, without its list of legal values.

    `message` is the record's, masked. A message that breaks off is continued from the next lines.
    """
    lines = message_lines(reading, record)
    first = masked_text(lines[0], masked_log)
    words = lines[0].text
    at = words.find(record.message[:FOUND_BY_CHARS]) if record.message else -1
    text = _PREFIX.sub("", first[at:] if at >= 0 else message)
    opening = words[at - 2 : at] if at >= 2 else ""
    if opening in {"('", '("'}:  # an error printed as its `repr`
        text = text.partition(f"{opening[1]})")[0]
    if trailer := _TRAILER.search(text):
        text = text[: trailer.start()]
    text = _continued(text, lines[1:], masked_log)
    choices = CHOICES.search(text)
    if choices and choices.start() >= MIN_MESSAGE_CHARS and len(text) > MAX_MESSAGE_CHARS:
        text = text[: choices.start()].rstrip(" ([{:;,")
        stop = text.rfind(". ")
        text = text[: stop + 1] if len(text) - stop < MAX_FRAGMENT_CHARS and stop > 0 else text
    if _NEEDS_FIELD.match(text):
        text = f"{_field_prefix(reading)}{text}"
    quotes = [mark for mark in "'\"" if text.startswith(mark) and text.count(mark) == 1]
    return (text.lstrip("".join(quotes)) if quotes else text).rstrip("! ") or message


def quoted_line(reading: LogReading, record: ErrorRecord, masked_log: str) -> str:
    """Return the error's line without its prefix; if its message breaks off, with the next lines."""
    first, *below = message_lines(reading, record)
    return _continued(masked_text(first, masked_log).strip(), below, masked_log)


def _continued(text: str, below: Iterable[LogLine], masked_log: str) -> str:
    """Return a text that breaks off within a sentence with the lines that end it."""
    for line in below:
        if not _INCOMPLETE.search(text.rstrip()):
            break
        text = f"{text.rstrip()} {masked_text(line, masked_log).strip()}"
    return text


def _field_prefix(reading: LogReading) -> str:
    """Return the argument and field of a validation error, from the lines above it, as a prefix."""
    above = lines_above(reading)
    argument = ARGUMENT.search("\n".join(line.text for line in above))
    field = _FIELD.match(above[-1].text) if above else None
    named = [found.group(1) for found in (argument, field) if found]
    return f"{' '.join(named)}: " if named else ""
