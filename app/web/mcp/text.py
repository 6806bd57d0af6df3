"""The tools' answers as Markdown that a model reads: short, with addresses, foreign words in code.

In: the shapes of `mcp_shapes`. Out: lines whose most important one stands first, since a small budget cuts
from the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.knowledge.diagnosis.markdown import FIX_WORDS, FOR_YOU_WORDS, OUTCOME_WORDS
from app.knowledge.text.quoting import NOTICE, code, escape, fenced
from app.web.mcp.shapes import (
    FixAnswer,
    FixShort,
    IssueHit,
    IssueShort,
    KnownAnswer,
    KnownShort,
    QuoteShort,
    RemedyShort,
    SearchAnswer,
)

STANDING_WORDS = {
    "open": "open",
    "fixed_later": "fixed later",
    "merged": "fix merged, in no known release",
    "closed": "closed without a known fix",
}
BASIS_WORDS = {
    "reported": "reported in it",
    "in_range": "it lies in the range that fails",
    "since": "fails since earlier",
}


def search_text(answer: SearchAnswer) -> str:
    """What was found, one issue to an entry."""
    if not answer.items:
        return "No stored issue was found. Try fewer words or other ones, or fewer filters.\n"
    lines = [f"{len(answer.items)} of {answer.total:,} issues, best first.", "", NOTICE, ""]
    lines += [line for hit in answer.items for line in _hit(hit)]
    return _text(lines)


def _hit(hit: IssueHit) -> Iterator[str]:
    yield f"- [#{hit.number}]({hit.url}) {code(hit.title)} ({hit.state})"
    if hit.error:
        yield f"  - error: {code(hit.error)}"
    told = [*hit.gpus, *hit.models, *((f"vLLM {hit.version}",) if hit.version else ())]
    if told:
        yield f"  - {escape(', '.join(told))}"
    if hit.fix_state:
        yield f"  - fix: {FIX_WORDS[hit.fix_state]}"
    if hit.remedy:
        yield f"  - helps: {code(hit.remedy)}"


def issue_text(answer: IssueShort) -> str:
    """One issue: fix, remedies, error, cause, facts, and the words they were read from."""
    reason = f" as {answer.state_reason.replace('_', ' ')}" if answer.state_reason else ""
    lines = [f"[{escape(answer.repo)}#{answer.number}]({answer.url}), {answer.state}{escape(reason)}:"]
    lines += [code(answer.title), "", NOTICE, ""]
    if answer.summary:
        lines += [escape(answer.summary), ""]
    if answer.fix:
        lines += [f"Fix: {_fix(answer.fix)}", ""]
    lines += _remedies(answer.workarounds)
    if answer.error:
        lines += ["Error:", "", *fenced([answer.error]), ""]
    lines += _listed("Cause, as stated there", answer.cause)
    lines += _facts(answer)
    if answer.quotes:
        lines += ["Read from these words:", "", *(_quote(item) for item in answer.quotes), ""]
    return _text(lines)


def _facts(answer: IssueShort) -> Iterator[str]:
    told = [("GPUs", answer.gpus), ("Models", answer.models)]
    told += [(f"Backend, {name.replace('_', ' ')}", values) for name, values in answer.backends.items()]
    told += [(f"Version of {name}", (value,)) for name, value in answer.versions.items()]
    if answer.regression:
        for name, value in answer.regression.model_dump(exclude_none=True).items():
            values = value if isinstance(value, tuple) else (value,)
            told.append((name.replace("_", " ").capitalize(), values))
    told.append(("Named in its text", tuple(f"#{number}" for number in answer.related)))
    lines = [f"- {label}: {', '.join(code(value) for value in values)}" for label, values in told if values]
    if lines:
        yield from ("Facts:", "", *lines, "")


def _quote(item: QuoteShort) -> str:
    return f"- {escape(item.field)} ({escape(item.source)}): {code(item.quote)}"


def fix_text(answer: FixAnswer) -> str:
    """Whether it is fixed; what that means for a version; what helps without the fix."""
    seen = f" (seen from vLLM {escape(answer.vllm_version)})" if answer.vllm_version else ""
    fix = _fix(answer.fix) if answer.fix else ""
    lines = [f"[#{answer.number}]({answer.url}): {fix}{seen}", ""]
    lines += [f"Title: {code(answer.title)}", ""]
    if answer.workarounds:
        lines += [*_remedies(answer.workarounds), NOTICE]
    return _text(lines)


def known_text(answer: KnownAnswer) -> str:
    """Known failures of a version."""
    version = escape(answer.version)
    if not answer.items:
        return f"Nothing is known to fail in vLLM {version}. That is no proof that nothing does.\n"
    count = f"{len(answer.items)} of {answer.total:,}"
    lines = [f"{count} known failures of vLLM {version}, most reported first.", ""]
    lines += [NOTICE, "", *(line for item in answer.items for line in _known(item))]
    return _text(lines)


def _known(item: KnownShort) -> Iterator[str]:
    release = f", in {escape(item.released_in)}" if item.released_in else ""
    how = f"{STANDING_WORDS[item.standing]}{release}; {BASIS_WORDS[item.basis]}"
    yield f"- [#{item.number}]({item.url}) {code(item.title)} ({how})"
    if item.error:
        yield f"  - error: {code(item.error)}"
    if item.remedy:
        yield f"  - helps: {code(item.remedy)}"


def _fix(fix: FixShort) -> str:
    words = FIX_WORDS[fix.state]
    if fix.pr:
        words += f" by {escape(fix.pr)}"
    if fix.released_in:
        words += f", in {escape(fix.released_in)}"
    if fix.for_you:
        words += f". {FOR_YOU_WORDS[fix.for_you]}"
    return f"{words.rstrip('.')}. {escape(fix.reason)}".rstrip()


def _remedies(remedies: Iterable[RemedyShort]) -> Iterator[str]:
    told = [_remedy(item) for item in remedies]
    if told:
        yield from ("Remedies:", "", *told, "")


def _remedy(item: RemedyShort) -> str:
    outcome = f"{OUTCOME_WORDS[item.outcome]}, said by the {item.by}"
    conditions = f", for {escape(item.conditions)}" if item.conditions else ""
    return f"- {code(item.action)}: {outcome}, [#{item.number}]({item.url}){conditions}"


def _listed(label: str, values: Iterable[str]) -> Iterator[str]:
    told = [f"- {code(value)}" for value in values]
    if told:
        yield from (f"{label}:", "", *told, "")


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
