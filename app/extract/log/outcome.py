"""What became of the program: whether it stopped, or only turned a request away.

In: a log's lines and its sorted errors. Out: one of the three outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from app.extract.log.lines import LogLine
from app.extract.log.root_cause import CauseChain
from app.extract.rules.patterns import pattern

Outcome = Literal["stopped", "refused", "none"]
"""stopped: a program ended, or did not come up, for the root cause.
refused: only a request failed; the server answered it with an error and goes on.
none: nothing failed."""

_ANSWERED = pattern(r'HTTP/\d\.\d" 4\d\d\b')
_SERVED = pattern(r'"POST [^"]{1,200} HTTP/\d\.\d" 2\d\d\b|Application startup complete')
_ENDED = pattern(r"EngineDeadError|died unexpectedly|initialization failed|failed to start|shutting down")
_VLLM = pattern(r"(?i)\bvllm\b|\((?:EngineCore|APIServer)\w* pid=")
MIN_KNOWN_LINES = 20
"""A shorter log need not name the program that printed it."""
_REFUSALS = frozenset({"BadRequestError", "NotFoundError", "UnprocessableEntityError"})


def find_outcome(errors: CauseChain, lines: Sequence[LogLine]) -> Outcome:
    """What became of the program whose log this is."""
    cause = errors.cause or errors.apparent
    if cause is None:
        return "refused" if any(_ANSWERED.search(line.text) for line in lines) else "none"
    if cause.type in _REFUSALS or cause.rule == "native.answer":
        return "refused"
    after = [line.text for line in lines if line.number > cause.line.number]
    if any(_ENDED.search(text) for text in after):
        return "stopped"
    return "refused" if any(_ANSWERED.search(text) or _SERVED.search(text) for text in after) else "stopped"


def is_of_vllm(log: str) -> bool | None:
    """Whether vLLM printed a log, or a program that runs vLLM; None if the log is too short to know."""
    if _VLLM.search(log):
        return True
    return False if log.count("\n") >= MIN_KNOWN_LINES else None
