"""Extract plain log lines from the export formats of logging platforms.

In: pasted text: JSON lines of Docker, journald or a logger, or an export of Loki, Grafana or Elasticsearch,
possibly truncated. Out: the plain lines, oldest first; any other text unchanged. Prefixes of plain lines
(kubectl, CRI, compose, syslog) are handled in `lines.py`.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from app.extract.rules.patterns import pattern

MIN_SHARE = 0.5
"""Minimum share of lines that must be records for a text to count as an export."""
MAX_RECORD_CHARS = 16_000
"""Docker splits a longer line into several records."""
_TEXT_KEYS = ("log", "line", "MESSAGE", "message", "msg", "textPayload", "body")
"""Keys of a record that contain the printed text."""
_TIME_KEYS = ("time", "timestamp", "__REALTIME_TIMESTAMP", "ts", "date", "@timestamp", "asctime")
_TRACEBACK_KEYS = ("exc_info", "exc_text", "stack_info", "traceback")
"""Keys in which JSON loggers store the traceback."""
_PRETTY = pattern(r'^[ \t]*"(?:log|line|MESSAGE|message|textPayload)" ?: ?("(?:[^"\\]|\\.)*"),?[ \t]*$')
_STAMPED = pattern(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*)(?:Z|[+-]\d\d:\d\d)?[ \t]")


@dataclass(frozen=True, slots=True)
class _Record:
    """One record of an export: printed text and time; `whole` if the line ends with this record."""

    text: str
    time: str
    whole: bool


def plain_log(log: str) -> str:
    """Return the lines that the program printed, without the platform's record format."""
    if log.lstrip()[:1] not in {"{", "["}:
        return _oldest_first(log)
    records = _of_document(log) or _of_lines(log)
    if not records:
        return log
    if records[0].time > records[-1].time:
        records.reverse()
    if len({len(record.time) for record in records}) == 1:
        records.sort(key=lambda record: record.time)
    return "".join(f"{record.text}\n" if record.whole else record.text for record in records)


def _of_document(log: str) -> list[_Record]:
    """Return the records of a text that is a single JSON value."""
    try:
        return list(_records_in(json.loads(log)))
    except (ValueError, RecursionError):
        return []


def _of_lines(log: str) -> list[_Record]:
    """Return the records of JSON lines, or of a truncated, pretty-printed export."""
    lines = [line for line in log.split("\n") if line.strip()]
    records: list[_Record] = []
    read = 0
    for line in lines:
        found = list(_records_of_line(line))
        read += bool(found)
        records += found or ([] if line.strip() in {"[", "]"} else [_Record(line, "", whole=True)])
    if read >= MIN_SHARE * len(lines):
        return records
    pretty = [found.group(1) for line in lines if (found := _PRETTY.match(line))]
    return [_Record(json.loads(text, strict=False).rstrip("\n"), "", whole=True) for text in pretty]


def _records_of_line(line: str) -> Iterator[_Record]:
    text = line.strip().lstrip("[,").rstrip(",]") if line.lstrip()[:1] in {"[", ",", "{"} else ""
    try:
        value = json.loads(text) if text[:1] == "{" else None
    except (ValueError, RecursionError):
        return
    yield from _records_in(value)


def _records_in(value: Any) -> Iterator[_Record]:
    """Yield the records in a JSON value: objects with text and time, or Loki's [time, text] pairs."""
    if isinstance(value, dict):
        text_key = next((key for key in _TEXT_KEYS if isinstance(value.get(key), str)), "")
        time = next((str(value[key]) for key in _TIME_KEYS if value.get(key)), "")
        if text_key and (time or "stream" in value):
            yield _record(value, text_key, time)
        else:
            yield from _within(value.values())
    elif isinstance(value, list):
        if len(value) == 2 and all(isinstance(item, str) for item in value) and value[0].isdigit():
            yield _Record(value[1].rstrip("\n"), value[0], whole=True)
        else:
            yield from _within(value)


def _within(values: Iterable[Any]) -> Iterator[_Record]:
    for value in values:
        if isinstance(value, (dict, list)):
            yield from _records_in(value)


def _record(row: dict[str, Any], text_key: str, time: str) -> _Record:
    text: str = row[text_key]
    whole = text_key != "log" or text.endswith("\n") or len(text) < MAX_RECORD_CHARS
    level = row.get("levelname") or (row.get("level") if text_key == "message" else None)
    parts = [f"{level.upper()} {text}" if isinstance(level, str) else text]
    parts += [row[key] for key in _TRACEBACK_KEYS if isinstance(row.get(key), str)]
    return _Record("\n".join(part.removesuffix("\n") for part in parts), time, whole)


def _oldest_first(log: str) -> str:
    """Reverse lines with platform timestamps if they are sorted newest first."""
    first = _STAMPED.match(log)
    if first is None:
        return log
    lines = log.rstrip("\n").split("\n")
    last = _STAMPED.match(lines[-1])
    if last is None or first.group(1) <= last.group(1):
        return log
    stamped = sum(_STAMPED.match(line) is not None for line in lines)
    return "\n".join(reversed(lines)) if stamped == len(lines) else log
