"""A diagnosis as Markdown: for chats, tickets and bots. Foreign text stands in code, never as markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.knowledge.diagnosis.explain import issue_name
from app.knowledge.diagnosis.shapes import Diagnosis, Match
from app.knowledge.fix.shapes import FixView
from app.knowledge.labels import BANDS, FIXES, FOR_YOU, MERGED_ELSEWHERE, OUTCOMES
from app.knowledge.remedies import Remedy
from app.knowledge.text.quoting import NOTICE, code, escape, fenced

MAX_WRAPPERS = 2


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """The answer as Markdown with headings; ends with a line end."""
    return "\n".join(_lines(diagnosis)).rstrip() + "\n"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    chance = f" ({diagnosis.matches[0].score:.0%})" if diagnosis.matches else ""
    yield f"**{BANDS[diagnosis.verdict]}**{chance}: {escape(diagnosis.headline)}"
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
        yield from (remedy_line(item, diagnosis.repo) for item in diagnosis.workarounds)
        yield ""
    if diagnosis.matches:
        yield "## Matches"
        for match in diagnosis.matches[:5]:
            yield from _match_lines(match, diagnosis.repo)
        yield ""
    if diagnosis.next_steps:
        yield "## Next steps"
        for number, step in enumerate(diagnosis.next_steps, 1):
            yield f"{number}. {escape(step.text)}" + (f" {code(step.command)}" if step.command else "")
        yield ""
    if cause or diagnosis.matches:
        yield NOTICE
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
    name = issue_name(best.repo, best.number, diagnosis.repo)
    yield f"[{name}]({best.url}), from line {best.excerpt[0].number}:"
    yield ""
    yield from fenced([line.text for line in best.excerpt])
    yield ""


def _match_lines(match: Match, repo: str) -> Iterator[str]:
    yield (
        f"- {BANDS[match.band]}, {match.score:.0%}: "
        f"[{issue_name(match.repo, match.number, repo)}]({match.url}) "
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


def state_words(fix: FixView, shown: Callable[[str], str] = str) -> str:
    """A fix state with its release; one of another repository with that one's name.

    Args:
        shown: makes foreign words fit for where they go.
    """
    if fix.elsewhere is None:
        release = f", in {shown(fix.released_in)}" if fix.released_in else ""
        return FIXES[fix.state] + (f" by {fix.pr}" if fix.pr else "") + release
    other = fix.elsewhere
    words = MERGED_ELSEWHERE if other.state == "merged" else FIXES[fix.state]
    release = f", in {shown(f'{other.repo} {other.released_in}')}" if other.released_in else ""
    return f"{words} by {shown(other.pr)}{release}"


def fix_words(fix: FixView) -> str:
    """A fix state in words."""
    words = state_words(fix, escape)
    if fix.for_you:
        words += f". {FOR_YOU[fix.for_you]}"
    return words


def remedy_line(remedy: Remedy, repo: str = "") -> str:
    """One remedy with outcome and source; issues of `repo` are told by their bare numbers."""
    return (
        f"- {code(remedy.action)}: {OUTCOMES[remedy.outcome]}, said by the {remedy.by}, "
        f"[{issue_name(remedy.repo, remedy.number, repo)}]({remedy.url})"
    )
