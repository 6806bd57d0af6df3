"""Errors that only report another: the rules, the lines of the engine's own handlers, what they quote.

In: error records and log lines. Out: wrapper lines as printed, and the inner error where a wrapper quotes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from app.extract.lists import load
from app.extract.log.lines import LogLine
from app.extract.log.messages import Cause, as_cause, first_sentence
from app.extract.log.native_faults import literal
from app.extract.log.tracebacks import ErrorRecord
from app.extract.rules.patterns import pattern
from app.extract.rules.rules import Rule, load_rule_set

MAX_WRAPPER_CHARS = 2_000
MAX_HANDLER_CHARS = 300
MAX_PLAIN_CHARS = 120
"""A longer wrapper line is told by its first sentence."""
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


def wrapper_rule(text: str) -> Rule | None:
    """The rule by which an error only wraps another, or None."""
    return next(iter(load_rule_set("wrappers").meeting(text)), None)


@lru_cache(maxsize=1)
def _words() -> Any:
    return pattern("|".join(literal(word) for word in load("wrappers")["words"]))


def quoted_error(rule: Rule, record: ErrorRecord) -> list[Cause]:
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


def wrapper_lines(lines: Sequence[LogLine], errors: Iterable[ErrorRecord]) -> list[tuple[str, LogLine]]:
    """Wrapper lines that are no exception: plain lines of handlers, of the engine's own and of others."""
    known = {record.line.number: record for record in errors}
    found = []
    for line in _speaking(lines):
        text = line.text
        if line.number in known:
            text = _before(known[line.number])
        if text.lstrip().startswith(("raise ", "#")) or 'File "' in text:
            continue
        rule = wrapper_rule(text[:MAX_WRAPPER_CHARS])
        if rule is not None and not rule.extra.get("noise"):
            found.append((_as_told(rule, text), line))
    return found + list(_handlers(lines, set(known)))


def _as_told(rule: Rule, text: str) -> str:
    """A wrapper's words: only those of its rule if these are a `part` of a line that tells other things."""
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
