"""What an issue's text states beside its facts: figures of a slowdown, a fix for some cards only, a proposal.

In: the text and its facts. Out: `Findings`, in the words of facts, each with the line that states it.
"""

from __future__ import annotations

import re
import textwrap
from itertools import islice

from pydantic import Field

from app.extract.facts import Facts, Frozen
from app.extract.fields.gpu_names import find_mentions
from app.extract.redaction.redact import mask_secrets
from app.extract.rules.patterns import pattern

MEASUREMENTS_MAX = 4
LINES_MAX, LINE_CHARS_MAX = 2_000, 400
PROPOSAL_CHARS = 300
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
_PROPOSED = pattern(
    r"\b(?:Suggested|Proposed|Possible|Potential|Recommended) (?:[Ff]ix(?:es)?|[Ss]olutions?)\b"
    r"(?: \([^()\n]{1,60}\))?[\s*:#]{1,8}([^\s*:#(][^\n]{20,})"
)
"""The heading of a proposal, also where the text lost its line breaks, and how it begins."""
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
    proposal: str | None = Field(None, description="how a fix that the report proposes begins; not proven")


def find_findings(text: str, facts: Facts | None) -> Findings:
    """What a report states of measurements, if it is slow, of a fix for some cards, and of a proposal."""
    if facts is None or not facts.is_failure:
        return Findings()
    lines = [line.strip() for line in islice(_LINE_END.split(text), LINES_MAX)]
    lines = [line for line in lines if line and len(line) <= LINE_CHARS_MAX]
    partial = next((found for line in lines if (found := _partial_fix(line))), None)
    measured: dict[str, Measurement] = {}
    for line in lines if facts.failure_kind == "slowdown" else ():
        if figure := _measurement(line):
            measured.setdefault(figure.metric, figure)
    return Findings(
        measurements=tuple(measured.values())[:MEASUREMENTS_MAX],
        partial_fix=partial,
        proposal=_proposal(text),
    )


def _proposal(text: str) -> str | None:
    found = _PROPOSED.search(text)
    if found is None:
        return None
    words = re.split(r"\s#{2,6}\s|```", found[1].replace("**", ""), maxsplit=1)[0][: 2 * PROPOSAL_CHARS]
    return textwrap.shorten(mask_secrets(words), PROPOSAL_CHARS, placeholder=" …").strip(" -:") or None


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
