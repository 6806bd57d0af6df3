"""A diagnosis as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from app.knowledge.answers import Diagnosis, Match
from app.knowledge.markdown import BAND_WORDS, FIX_WORDS, FOR_YOU_WORDS, OUTCOME_WORDS

WIDTH = 96
SIGNS = {"works": "+", "partial": "~", "fails": "x"}


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Verdict, remedies, fix state, root cause, matches, next steps: in that order."""
    text = "\n".join(_lines(diagnosis)).rstrip() + "\n"
    return "".join(char for char in text if char in "\n\t" or char.isprintable())


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    chance = f" {diagnosis.matches[0].score:.0%}" if diagnosis.matches else ""
    yield fill(f"{BAND_WORDS[diagnosis.verdict].upper()}{chance}  {diagnosis.headline}", WIDTH)
    yield ""
    if diagnosis.workarounds:
        yield "REMEDIES"
        for item in diagnosis.workarounds:
            yield f"  {SIGNS[item.outcome]} {item.action}"
            yield f"      {OUTCOME_WORDS[item.outcome]}, said by the {item.by} of #{item.number}"
        yield ""
    if diagnosis.verdict in {"same", "likely"} and (fix := diagnosis.matches[0].fix):
        named = f" by {fix.pr}" if fix.pr else ""
        named += f", in {fix.released_in}" if fix.released_in else ""
        yield "FIX STATE"
        meaning = FOR_YOU_WORDS[fix.for_you] if fix.for_you else fix.reason
        yield f"  {FIX_WORDS[fix.state]}{named}. {meaning}"
        yield ""
    cause = diagnosis.root_cause
    if cause:
        where = f"process {cause.process}, " if cause.process else ""
        yield "ROOT CAUSE"
        yield f"  {where}line {cause.line}" + (f", at {cause.frame}" if cause.frame else "")
        yield fill(cause.quote, WIDTH, initial_indent="  ", subsequent_indent="    ")
        yield ""
    if diagnosis.matches:
        yield "MATCHES"
        for match in diagnosis.matches[:5]:
            yield from _match(match)
        yield ""
    if diagnosis.next_steps:
        yield "NEXT STEPS"
        for number, step in enumerate(diagnosis.next_steps, 1):
            yield fill(f"{number}. {step.text}", WIDTH, initial_indent="  ", subsequent_indent="     ")
            if step.command:
                yield f"     {step.command}"


def _match(match: Match) -> Iterator[str]:
    yield fill(
        f"{BAND_WORDS[match.band]:13}{match.score:>4.0%}  #{match.number} {match.title} ({match.state})",
        WIDTH, initial_indent="  ", subsequent_indent=" " * 21,
    )  # fmt: skip
    yield f"  {'':19}{match.url}"
    for sign, phrases in (("=", match.why.shared[:3]), ("/", match.why.differs[:2])):
        for phrase in phrases:
            yield f"  {'':19}{sign} {phrase}"
