"""One issue as Markdown, for programs that read text. Foreign words are quoted or in code, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from app.extract.facts import Evidence, Facts, Workaround
from app.knowledge.answers import IssueAnswer
from app.knowledge.markdown import OUTCOME_WORDS, fix_words
from app.knowledge.quoting import NOTICE, code, escape, quotation

BODY_CHARS_MAX = 70_000
"""GitHub's own limit is 65,536."""
SPEAKER_WORDS = {"reporter": "the reporter", "maintainer": "a maintainer", "other": "another user"}
QUOTES_SHOWN = 40


def issue_markdown(issue: IssueAnswer) -> str:
    """The issue as Markdown, what helps first and its own text last; ends with a line end."""
    facts = issue.facts
    parts: list[Iterable[str]] = [_head(issue, facts), _fix(issue)]
    if facts:
        parts += [_remedies(facts), _error(facts), _cause(facts), _values(facts), _quotes(facts)]
    parts.append(_body(issue))
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _head(issue: IssueAnswer, facts: Facts | None) -> Iterator[str]:
    yield f"# {escape(issue.repo)}#{issue.number}"
    yield ""
    yield code(issue.title)
    yield ""
    kind = "Pull request" if issue.is_pull_request else "Issue"
    reason = f" as {issue.state_reason.replace('_', ' ')}" if issue.state_reason else ""
    words = f"{kind}, {escape(issue.state)}{escape(reason)}"
    dates = [f"{name} {_day(at)}" for name, at in _dates(issue) if at]
    yield f"{'; '.join([words, *dates])}. [On GitHub]({issue.url})"
    yield ""
    if issue.gone_at:
        yield f"No longer on GitHub; noticed {_day(issue.gone_at)}. What follows was stored before."
        yield ""
    if facts and facts.summary:
        yield escape(facts.summary)
        yield ""
    yield NOTICE
    yield ""


def _dates(issue: IssueAnswer) -> tuple[tuple[str, datetime | None], ...]:
    return ("opened", issue.created_at), ("updated", issue.updated_at), ("closed", issue.closed_at)


def _fix(issue: IssueAnswer) -> Iterator[str]:
    yield "## Fix state"
    yield ""
    words = fix_words(issue.fix).rstrip(".")
    yield f"{words}. {escape(issue.fix.reason)}".rstrip()
    yield ""


def _remedies(facts: Facts) -> Iterator[str]:
    if not facts.workarounds:
        return
    yield "## Remedies"
    yield ""
    yield from (_remedy(item) for item in facts.workarounds)
    yield ""


def _remedy(item: Workaround) -> str:
    told = item.conditions
    versions = tuple(f"vLLM {version}" for version in told.versions)
    where = (*told.gpus, *told.models, *told.backends, *versions)
    line = f"- {code(item.action)}: {OUTCOME_WORDS[item.outcome]}, said by {SPEAKER_WORDS[item.by]}"
    return f"{line}, for {', '.join(map(code, where))}" if where else line


def _error(facts: Facts) -> Iterator[str]:
    error = facts.error
    if error is None:
        return
    yield "## Error"
    yield ""
    text = f"{error.type}: {error.message}" if error.type else error.message
    yield code(text) + (f" at {code(error.frame)}" if error.frame else "")
    if error.wrappers:
        yield ""
        yield f"Reported by: {', '.join(map(code, error.wrappers))}"
    yield ""


def _cause(facts: Facts) -> Iterator[str]:
    if not facts.cause:
        return
    yield "## Cause, as stated there"
    yield ""
    yield from (
        f"- {code(item.text)}" + (" (a guess)" if item.certainty == "hypothesis" else "")
        for item in facts.cause
    )
    yield ""


def _values(facts: Facts) -> Iterator[str]:
    told: list[tuple[str, Iterable[str]]] = [("GPUs", facts.gpus), ("Models", facts.models)]
    told += [(f"Backend, {name.replace('_', ' ')}", values) for name, values in facts.backends.items()]
    told += [(f"Version of {name}", (value,)) for name, value in facts.versions.items()]
    if facts.regression:
        for name, value in facts.regression.model_dump(exclude_none=True).items():
            values = value if isinstance(value, tuple) else (value,)
            told.append((name.replace("_", " ").capitalize(), values))
    told.append(("Names", tuple(f"#{number}" for number in facts.related)))
    told.append(("Names elsewhere", facts.related_elsewhere))
    lines = [f"- {label}: {', '.join(map(code, values))}" for label, values in told if tuple(values)]
    if lines:
        yield from ("## Facts", "", *lines, "")


def _quotes(facts: Facts) -> Iterator[str]:
    if facts.evidence:
        yield from ("## Read from these words", "")
        yield from (_quote(item) for item in facts.evidence[:QUOTES_SHOWN])
        if len(facts.evidence) > QUOTES_SHOWN:
            yield f"- and {len(facts.evidence) - QUOTES_SHOWN} more, in the JSON answer"
        yield ""


def _quote(item: Evidence) -> str:
    return f"- {escape(item.field)} {code(item.value)}, {escape(item.source)}: {code(item.quote)}"


def _body(issue: IssueAnswer) -> Iterator[str]:
    if issue.body.strip():
        yield from ("## Its own text", "")
        yield from quotation(issue.body[:BODY_CHARS_MAX], f"[#{issue.number}]({issue.url})")


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d}"
