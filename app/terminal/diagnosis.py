"""A diagnosis as text for a terminal: in colours where the terminal has them, plain elsewhere.

Colours follow what `rich` makes of the terminal and of NO_COLOR. Nothing of a log or an issue can move the
cursor or colour anything: what is not printable is taken out before.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.text import Text

from app.knowledge.diagnosis.explain import issue_name
from app.knowledge.diagnosis.markdown import state_words
from app.knowledge.diagnosis.shapes import Diagnosis, Match
from app.knowledge.labels import BANDS, FOR_YOU, OUTCOMES
from app.knowledge.remedies import Remedy
from app.knowledge.text.quoting import inert

WIDTH_MAX, WIDTH_MIN = 96, 40
SIGNS = {"works": "+", "partial": "~", "fails": "x"}
_BAND_STYLES = {"same": "bold green", "likely": "bold yellow", "related": "bold", "unknown": "bold"}
_OUTCOME_STYLES = {"works": "green", "partial": "yellow", "fails": "red"}


class Part(NamedTuple):
    """Some lines, and how they are shown."""

    text: str
    style: str = ""


def print_diagnosis(diagnosis: Diagnosis, file: TextIO) -> None:
    """Write verdict, remedies, fix state, root cause, matches and next steps, in that order.

    Lines are as long as the terminal is wide, but no longer than can be read.
    """
    console = Console(file=file, highlight=False, soft_wrap=True)
    width = max(WIDTH_MIN, min(WIDTH_MAX, console.width)) if console.is_terminal else WIDTH_MAX
    for part in _shown(diagnosis, width):
        console.print(Text(part.text, style=part.style))


def _shown(diagnosis: Diagnosis, width: int) -> list[Part]:
    parts = [Part(_printable(part.text), part.style) for part in _parts(diagnosis, width)]
    while parts and not parts[-1].text.strip():
        parts.pop()
    return parts


def _printable(text: str) -> str:
    return "".join(char for char in inert(text) if char in "\n\t" or char.isprintable())


def _parts(diagnosis: Diagnosis, width: int) -> Iterator[Part]:
    chance = f" {diagnosis.matches[0].score:.0%}" if diagnosis.matches else ""
    verdict = f"{BANDS[diagnosis.verdict].upper()}{chance}  {diagnosis.headline}"
    yield Part(fill(verdict, width), _BAND_STYLES[diagnosis.verdict])
    yield Part("")
    if diagnosis.workarounds:
        yield Part("REMEDIES", "bold")
        for item in diagnosis.workarounds:
            yield from _remedy(item, diagnosis.repo)
        yield Part("")
    yield from _fix(diagnosis, width)
    yield from _cause(diagnosis, width)
    if diagnosis.matches:
        yield Part("MATCHES", "bold")
        for match in diagnosis.matches[:5]:
            yield from _match(match, diagnosis.repo, width)
        yield Part("")
    if diagnosis.next_steps:
        yield Part("NEXT STEPS", "bold")
        for number, step in enumerate(diagnosis.next_steps, 1):
            yield Part(fill(f"{number}. {step.text}", width, initial_indent="  ", subsequent_indent="     "))
            if step.command:
                yield Part(f"     {step.command}", "cyan")


def _remedy(remedy: Remedy, repo: str) -> Iterator[Part]:
    yield Part(f"  {SIGNS[remedy.outcome]} {remedy.action}", _OUTCOME_STYLES[remedy.outcome])
    name = issue_name(remedy.repo, remedy.number, repo)
    yield Part(f"      {OUTCOMES[remedy.outcome]}, said by the {remedy.by} of {name}", "dim")


def _fix(diagnosis: Diagnosis, width: int) -> Iterator[Part]:
    fix = diagnosis.matches[0].fix if diagnosis.verdict in {"same", "likely"} else None
    if fix is None:
        return
    meaning = FOR_YOU[fix.for_you] if fix.for_you else fix.reason
    yield Part("FIX STATE", "bold")
    told = f"{state_words(fix)}. {meaning}"
    yield Part(fill(told, width, initial_indent="  ", subsequent_indent="  "))
    yield Part("")


def _cause(diagnosis: Diagnosis, width: int) -> Iterator[Part]:
    cause = diagnosis.root_cause
    if cause is None:
        return
    where = f"process {cause.process}, " if cause.process else ""
    yield Part("ROOT CAUSE", "bold")
    yield Part(f"  {where}line {cause.line}" + (f", at {cause.frame}" if cause.frame else ""), "dim")
    yield Part(fill(cause.quote, width, initial_indent="  ", subsequent_indent="    "), "red")
    yield Part("")


def _match(match: Match, repo: str, width: int) -> Iterator[Part]:
    name = issue_name(match.repo, match.number, repo)
    head = f"{BANDS[match.band]:13}{match.score:>4.0%}  {name} {match.title} ({match.state})"
    yield Part(fill(head, width, initial_indent="  ", subsequent_indent=" " * 21))
    yield Part(f"  {'':19}{match.url}", "dim")
    for sign, phrases in (("=", match.why.shared[:3]), ("/", match.why.differs[:2])):
        for phrase in phrases:
            yield Part(f"  {'':19}{sign} {phrase}", "dim")
