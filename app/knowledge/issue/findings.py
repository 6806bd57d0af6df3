"""What an issue's text states beside its facts: how much slower it is, on which cards a fix does not help.

In: the text and its facts. Out: `Findings`, in the words of facts, each with the line that states it.
"""

from __future__ import annotations

import re
from itertools import islice

from pydantic import Field

from app.extract.facts import Facts, Frozen
from app.extract.fields.gpu_names import find_mentions
from app.extract.redaction.redact import mask_secrets
from app.extract.rules.patterns import pattern

MEASUREMENTS_MAX = 4
LINES_MAX, LINE_CHARS_MAX = 2_000, 400
_LINE_END = re.compile(r"(?<=[.!?;])\s+|\n")
_METRIC = pattern(
    r"(?i)\b(TTFT|TPOT|ITL|LAT|E2EL?|latency|throughput|acceptance (?:length|rate)|req(?:uests)?/s"
    r"|tok(?:en)?s?/s|tokens per second|step time|load(?:ing)? time|start-?up time)\b"
    r"(?: ?(P\d\d|mean|median))?"
)
_CHANGE = pattern(
    r"(?i)([+−]~?\d+(?:\.\d+)?(?:[-–]\d+(?:\.\d+)?)? ?%|(?:\b|[-~])\d+(?:\.\d+)?(?:[-–]\d+(?:\.\d+)?)? ?%"
    r"|\b\d+(?:\.\d+)? ?[x×] (?:slower|lower|higher|worse|longer|faster|drop|slowdown|increase)\w*)"
    r"(?:[^\d%\n]{1,60}?(?:to|/|,) ?([+−-]\d+(?:\.\d+)? ?%))?"
)
_RACK = re.compile(r"(?<=\d)NVL\d*\b")
"""How a rack is built, glued to the name of its card."""
_A_FIX = pattern(r"(?i)\b(?:fix(?:es|ed)?|patch(?:ed)?|PR|commit)\b|#\d{3,6}")
_CURED = pattern(r"(?i)\b(?:fixe[sd]|resolve[sd]|solve[sd]|cure[sd]|works?|gone|fixed)\b")
_DENIED = pattern(r"(?i)\b(?:not|never|n't|does ?n.t|did ?n.t)\b")
_FAILS = pattern(r"(?i)\b(?:still|remains?|broken|fails?|crash(?:es)?|not|persists?|hangs?)\b")
_BUT = pattern(r"(?i),? \b(?:but|however|while|whereas|though|although|yet)\b")


class Measurement(Frozen):
    """A figure that a report of slowness gives."""

    metric: str = Field(description="what was measured, such as TTFT P99")
    change: str = Field(description="by how much it changed, as it is written")
    quote: str


class PartialFix(Frozen):
    """A fix that helps on some cards and not on others."""

    fixed_on: tuple[str, ...]
    not_on: tuple[str, ...]
    quote: str


class Findings(Frozen):
    """What was found; empty where the text states nothing of it."""

    measurements: tuple[Measurement, ...] = ()
    partial_fix: PartialFix | None = None


def find_findings(text: str, facts: Facts | None) -> Findings:
    """What a report states of measurements, if it is slow, and of a fix that helps on some cards only."""
    if facts is None or not facts.is_failure:
        return Findings()
    lines = [line.strip() for line in islice(_LINE_END.split(text), LINES_MAX)]
    lines = [line for line in lines if line and len(line) <= LINE_CHARS_MAX]
    partial = next((found for line in lines if (found := _partial_fix(line))), None)
    measured: dict[str, Measurement] = {}
    for line in lines if facts.failure_kind == "slowdown" else ():
        if figure := _measurement(line):
            measured.setdefault(figure.metric, figure)
    return Findings(measurements=tuple(measured.values())[:MEASUREMENTS_MAX], partial_fix=partial)


def _measurement(line: str) -> Measurement | None:
    metric, change = _METRIC.search(line), _CHANGE.search(line)
    if metric is None or change is None:
        return None
    name = " ".join(part for part in metric.groups() if part)
    figures = " to ".join(" ".join(part.split()) for part in change.groups() if part)
    return Measurement(metric=name, change=figures, quote=mask_secrets(line))


def _partial_fix(line: str) -> PartialFix | None:
    but = _BUT.search(line)
    if but is None or not _A_FIX.search(line):
        return None
    before, after = line[: but.start()], line[but.end() :]
    if not _CURED.search(before) or _DENIED.search(before) or not _FAILS.search(after):
        return None
    fixed_on = tuple(dict.fromkeys(mention.name for mention in find_mentions(_RACK.sub("", before))))
    not_on = tuple(dict.fromkeys(mention.name for mention in find_mentions(_RACK.sub("", after))))
    if not fixed_on or not not_on or set(fixed_on) & set(not_on):
        return None
    return PartialFix(fixed_on=fixed_on, not_on=not_on, quote=mask_secrets(line))
