"""Whether the answer to a real server's log is right: label and answer are compared by their words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.bench.cases import RealLog
from app.knowledge.diagnosis.shapes import Diagnosis

HEADLINE_CHARS_MAX = 240
_WORD = re.compile(r"[a-z0-9_.\-/]{2,}")
_QUOTES = re.compile(r"[`'\"█]")


@dataclass(frozen=True, slots=True)
class RealLogResult:
    """What of an answer is right, beside its matches; `unrelated_remedy`: one is shown under `unknown`."""

    root_cause: bool
    headline: bool
    unrelated_remedy: bool


def check_answer(log: RealLog, answer: Diagnosis) -> RealLogResult:
    """The answer beside the log's labels."""
    root = answer.root_cause
    remedies = answer.workarounds or any(match.workarounds for match in answer.matches)
    return RealLogResult(
        root_cause=root is not None and is_root_cause(log, root.message or root.type or ""),
        headline=_names_cause(answer.headline, log),
        unrelated_remedy=answer.verdict == "unknown" and bool(remedies),
    )


def is_root_cause(log: RealLog, message: str) -> bool:
    """Whether a message and one of the log's causes hold each other or share most of their words."""
    return any(_is_same_message(cause, message) for cause in (log.error, *log.also_ok))


def _is_same_message(label: str, found: str) -> bool:
    a, b = (" ".join(_QUOTES.sub("", text.lower()).split()) for text in (label, found))
    words_a, words_b = _WORD.findall(a), _WORD.findall(b)
    if not a or not b or len(words_b) > max(3 * len(words_a), len(words_a) + 12):
        return a == b  # a page that holds the cause does not name it
    if a in b or (b in a and len(words_b) >= 4):
        return True
    return len({*words_a} & {*words_b}) >= max(3, 0.75 * min(len({*words_a}), len({*words_b})))


def _names_cause(line: str, log: RealLog) -> bool:
    """Whether a short line holds most of the first ten longer words of a cause."""
    held = set(_WORD.findall(line.lower()))
    causes = [_WORD.findall(cause.lower()) for cause in (log.error, *log.also_ok)]
    wanted = [[word for word in cause if len(word) > 3][:10] for cause in causes]
    shares = [sum(word in held for word in words) / len(words) for words in wanted if words]
    return "\n" not in line and len(line) <= HEADLINE_CHARS_MAX and max(shares, default=1) >= 0.6
