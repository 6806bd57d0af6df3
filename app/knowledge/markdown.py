"""A diagnosis as Markdown: for chats, tickets and bots. Foreign text stands in code, never as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from app.knowledge.answers import Diagnosis, FixView, Match, Remedy

MAX_WRAPPERS = 2
OUTCOME_WORDS = {"works": "works", "partial": "helps partly", "fails": "did not help"}
BAND_WORDS = {"same": "Same failure", "likely": "Likely", "related": "Related", "unknown": "Unknown"}
FIX_WORDS = {
    "fixed": "Fixed", "merged_unreleased": "Merged, in no known release", "in_progress": "In progress",
    "not_fixed": "Not fixed", "closed_unresolved": "Closed unresolved", "unknown": "Fix unknown",
}  # fmt: skip
FOR_YOU_WORDS = {
    "upgrade": "Upgrade: your version does not have it.",
    "already_included": "You have the fix; this is something else, or it came back.",
    "not_fixed": "Upgrading is not known to help.",
    "unknown": "Whether your version has it cannot be told.",
}


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """The answer as Markdown with headings; ends with a line end."""
    return "\n".join(_lines(diagnosis)).rstrip() + "\n"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    chance = f" ({diagnosis.matches[0].score:.0%})" if diagnosis.matches else ""
    yield f"**{BAND_WORDS[diagnosis.verdict]}**{chance}: {escape(diagnosis.headline)}"
    yield ""
    cause = diagnosis.root_cause
    if cause:
        yield "## Root cause"
        where = f", process {code(cause.process)}" if cause.process else ""
        yield f"{escape(cause.type or 'Error')}{where}, line {cause.line}" + (
            f", at {code(cause.frame)}" if cause.frame else ""
        )
        yield ""
        yield code(cause.quote)
        yield ""
    yield from _both_logs(diagnosis)
    if diagnosis.workarounds:
        yield "## Remedies"
        yield from (remedy_line(item) for item in diagnosis.workarounds)
        yield ""
    if diagnosis.matches:
        yield "## Matches"
        for match in diagnosis.matches[:5]:
            yield from _match_lines(match)
        yield ""
    if diagnosis.next_steps:
        yield "## Next steps"
        for number, step in enumerate(diagnosis.next_steps, 1):
            yield f"{number}. {escape(step.text)}" + (f" {code(step.command)}" if step.command else "")
        yield ""
    freshness = f"{diagnosis.index.as_of:%Y-%m-%d %H:%M} UTC" if diagnosis.index.as_of else "never synced"
    yield f"Checked against {diagnosis.index.issues:,} issues (as of: {freshness})."


def _both_logs(diagnosis: Diagnosis) -> Iterator[str]:
    """The error's words in the log, and the closest issue's telling lines below them."""
    cause = diagnosis.root_cause
    best = diagnosis.matches[0] if diagnosis.matches else None
    if cause is None or best is None or not best.excerpt:
        return
    yield "## Both logs"
    yield f"Yours, line {cause.line}" + (" and what reports it:" if diagnosis.wrappers else ":")
    yield ""
    yield from fenced([cause.quote, *diagnosis.wrappers[:MAX_WRAPPERS]])
    yield ""
    yield f"[#{best.number}]({best.url}), from line {best.excerpt[0].number}:"
    yield ""
    yield from fenced([line.text for line in best.excerpt])
    yield ""


def _match_lines(match: Match) -> Iterator[str]:
    yield (
        f"- {BAND_WORDS[match.band]}, {match.score:.0%}: [#{match.number}]({match.url}) "
        f"{escape(match.title)} ({match.state})"
    )
    if match.why.shared:
        yield f"  - shared: {escape('; '.join(match.why.shared))}"
    if match.why.differs:
        yield f"  - different: {escape('; '.join(match.why.differs))}"
    if match.fix:
        yield f"  - fix: {fix_words(match.fix)}"
    if match.regression:
        told = match.regression.model_dump(exclude_none=True)
        words = "; ".join(
            f"{key.replace('_', ' ')} {', '.join(value) if isinstance(value, tuple | list) else value}"
            for key, value in told.items()
            if value
        )
        yield f"  - regression: {escape(words)}"


def fix_words(fix: FixView) -> str:
    """A fix state in words."""
    words = FIX_WORDS[fix.state]
    if fix.pr:
        words += f" by {fix.pr}"
    if fix.released_in:
        words += f", in {escape(fix.released_in)}"
    if fix.for_you:
        words += f". {FOR_YOU_WORDS[fix.for_you]}"
    return words


def remedy_line(remedy: Remedy) -> str:
    """One remedy with outcome and source."""
    return (
        f"- {code(remedy.action)}: {OUTCOME_WORDS[remedy.outcome]}, said by the {remedy.by}, "
        f"[#{remedy.number}]({remedy.url})"
    )


def code(text: str | None) -> str:
    """Foreign text as inline code that cannot end early."""
    flat = " ".join((text or "").split())
    fence = "`"
    while fence in flat:
        fence += "`"
    pad = " " if not flat or flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def fenced(lines: Iterable[str]) -> Iterator[str]:
    """Foreign lines as a block of code that cannot end early."""
    told = [_LINE_ENDS.sub(" ", line) for line in lines]
    longest = max((len(run) for line in told for run in _FENCES.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from told
    yield fence


_FENCES = re.compile(r"`{3,1000}")
_LINE_ENDS = re.compile(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What any program may take for the end of a line."""
_MARKUP = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>#|!~"} | {"@": "@\u200b"})
"""A zero-width space after @ keeps a tracker from calling somebody by name."""
_BLOCK_START = re.compile(r"(\d{0,9})(?:[-+#=]{1,200}|[.)])(?= |$)")
"""What would begin a list, a heading or an underline at the start of a line."""


def escape(text: str) -> str:
    """Foreign text as plain words: no markup, no mention of anybody."""
    plain = " ".join(text.split()).translate(_MARKUP).replace("\\#", "#")
    start = _BLOCK_START.match(plain)
    return f"{plain[: start.end(1)]}\\{plain[start.end(1) :]}" if start else plain
