"""A log as its program printed it, taken out of what a platform exports it in.

In: what somebody pastes: JSON lines of docker, journald or a logger; an export of Loki, Grafana or
Elasticsearch, whole or cut. Out: the plain lines, oldest first; any other text as it is. Prefixes of plain
lines (kubectl, CRI, compose, syslog) are `lines.py`'s.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from app.extract.rules.patterns import pattern

MIN_SHARE = 0.5
"""How many of a text's lines must be records for it to be an export."""
MAX_RECORD_CHARS = 16_000
"""Docker cuts a longer line into several records."""
_WORDS = ("log", "line", "MESSAGE", "message", "msg", "textPayload", "body")
"""Where a record keeps what was printed."""
_TIMES = ("time", "timestamp", "__REALTIME_TIMESTAMP", "ts", "date", "@timestamp", "asctime")
_TRACES = ("exc_info", "exc_text", "stack_info", "traceback")
"""Where a program's own JSON logger keeps the traceback."""
_PRETTY = pattern(r'^[ \t]*"(?:log|line|MESSAGE|message|textPayload)" ?: ?("(?:[^"\\]|\\.)*"),?[ \t]*$')
_STAMPED = pattern(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*)(?:Z|[+-]\d\d:\d\d)?[ \t]")


@dataclass(frozen=True, slots=True)
class _Record:
    """One record of an export: what was printed, and when; `whole` if its line ended there."""

    text: str
    time: str
    whole: bool


def plain_log(log: str) -> str:
    """The lines that a program printed, without the records that a platform keeps them in."""
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
    """The records of a text that is one JSON value."""
    try:
        return list(_records_in(json.loads(log)))
    except (ValueError, RecursionError):
        return []


def _of_lines(log: str) -> list[_Record]:
    """The records of a text that holds one a line, or one over several lines of which it is cut off."""
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
    """The records within a JSON value: objects that hold words and a time, or Loki's pairs of both."""
    if isinstance(value, dict):
        words = next((key for key in _WORDS if isinstance(value.get(key), str)), "")
        time = next((str(value[key]) for key in _TIMES if value.get(key)), "")
        if words and (time or "stream" in value):
            yield _record(value, words, time)
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


def _record(row: dict[str, Any], words: str, time: str) -> _Record:
    text: str = row[words]
    whole = words != "log" or text.endswith("\n") or len(text) < MAX_RECORD_CHARS
    level = row.get("levelname") or (row.get("level") if words == "message" else None)
    parts = [f"{level.upper()} {text}" if isinstance(level, str) else text]
    parts += [row[key] for key in _TRACES if isinstance(row.get(key), str)]
    return _Record("\n".join(part.removesuffix("\n") for part in parts), time, whole)


def _oldest_first(log: str) -> str:
    """Lines with the platform's time in front, which many exports print newest first."""
    first = _STAMPED.match(log)
    if first is None:
        return log
    lines = log.rstrip("\n").split("\n")
    last = _STAMPED.match(lines[-1])
    if last is None or first.group(1) <= last.group(1):
        return log
    stamped = sum(_STAMPED.match(line) is not None for line in lines)
    return "\n".join(reversed(lines)) if stamped == len(lines) else log
