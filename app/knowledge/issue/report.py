"""The report on one issue: every known value with its source, a timeline, and the missing fields.

In Markdown, numbers appear only as written in the source: a derived value (`12.9` from `cu129`) is shown by
its quote. This module also renders the issue as Markdown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pydantic import Field
from sqlalchemy.orm import Session

from app.errors import PullRequestError
from app.extract.facts import (
    BACKEND_KEYS,
    FORMER,
    VERSION_KEYS,
    Cause,
    Conditions,
    ErrorFact,
    Facts,
    Frozen,
    Regression,
    Reproduction,
)
from app.extract.redact import mask_secrets
from app.extract.text.blocks import MAINTAINER_ASSOCIATIONS
from app.knowledge.fix.shapes import FixView
from app.knowledge.freshness import freshness
from app.knowledge.issue.relations import Graph, issue_graph, key_of
from app.knowledge.issue.stored import Quote, Sources, StoredIssue, clipped, figures_stand, load_issue
from app.knowledge.issue.view import Findings, GitHubFacts, IssueAnswer, build_answer
from app.knowledge.labels import BACKENDS, REGRESSION, SPEAKERS, VERSIONS
from app.knowledge.markdown import code, escape, render_markdown
from app.knowledge.remedies import OUTCOME_RANK, Remedy, ReportedRemedy
from app.store.github.issues import find_heads
from app.store.records import CommentRecord
from app.store.session import Store


class ReportFact(Frozen):
    """A value with the quotes that state it."""

    field: str
    label: str
    value: str
    is_literal: bool = Field(description="whether its quotes contain the figures; false if derived")
    quotes: tuple[Quote, ...] = ()


class ReportError(ErrorFact):
    quotes: tuple[Quote, ...] = ()


class StatedCause(Cause):
    quotes: tuple[Quote, ...] = ()


class CommandExample(Reproduction):
    """A command from the issue and its reported outcome."""

    quotes: tuple[Quote, ...] = ()


class ReportRemedy(ReportedRemedy):
    quotes: tuple[Quote, ...] = ()


class Moment(Frozen):
    """A timeline event, dated by its source."""

    at: datetime
    text: str
    source: str
    url: str
    quote: str = ""


class NotKnown(Frozen):
    """A field for which the sources give no value."""

    field: str
    text: str


class Report(GitHubFacts):
    """Everything known about one issue, with sources."""

    failure_kind: str | None
    summary: str
    facts: tuple[ReportFact, ...] = ()
    error: ReportError | None = None
    cause: tuple[StatedCause, ...] = ()
    examples: tuple[CommandExample, ...] = ()
    workarounds: tuple[Remedy, ...] = ()
    remedies: tuple[ReportRemedy, ...] = Field(
        (), description="former name of `workarounds`, with all quotes", json_schema_extra=FORMER
    )
    fix: FixView
    fix_quotes: tuple[Quote, ...] = ()
    regression: tuple[ReportFact, ...] = ()
    findings: Findings = Field(default_factory=Findings, description="statements beyond the facts")
    graph: Graph
    timeline: tuple[Moment, ...] = ()
    not_known: tuple[NotKnown, ...] = ()
    as_of: datetime | None = Field(description="end of the newest complete sync of the repository")


ALIKE_MAX = 12


def make_report(
    store: Store, repo: str, number: int, *, vllm_version: str | None = None, versions_of: str | None = None
) -> Report:
    """Return the report on a stored issue.

    Args:
        versions_of: the repository that `vllm_version` belongs to; by default the issue's own.

    Raises:
        NotFoundError: the issue is not stored.
        PullRequestError: the number is a pull request's.
    """
    with store.reading() as session:
        stored = load_issue(session, repo, number)
        answer = build_answer(session, stored, vllm_version=vllm_version, versions_of=versions_of)
        if answer.is_pull_request:
            raise PullRequestError(
                f"#{number} is a pull request. Reports are made of issues: give an issue's."
            )
        sources = stored.sources()
        graph = issue_graph(session, stored, sources, alike_max=ALIKE_MAX)
        moments = timeline(session, stored, graph, sources)
    facts = answer.facts
    missing = answer.origin == "github" and len(stored.comments) < answer.comments
    return Report.based_on(
        answer,
        failure_kind=facts.failure_kind if facts and facts.is_failure else None,
        summary=facts.summary if facts else "",
        graph=graph,
        timeline=moments,
        not_known=not_known(facts, answer.fix, graph, comments_missing=missing),
        as_of=freshness(store, repo).as_of,
        **(_with_quotes(facts, sources, repo) if facts else {}),
    )


def _with_quotes(facts: Facts, sources: Sources, repo: str) -> dict[str, Any]:
    """Return the report fields that come from the issue's texts."""
    error = facts.error
    remedies = sorted(facts.workarounds, key=lambda item: OUTCOME_RANK[item.outcome])
    return {
        "facts": tuple(_facts(facts, sources)),
        "error": error
        and ReportError.based_on(error, quotes=sources.quotes("error.message") or sources.quotes("error")),
        "cause": tuple(
            StatedCause.based_on(item, quotes=sources.quotes("cause", item.text)) for item in facts.cause
        ),
        "examples": tuple(
            CommandExample.based_on(item, quotes=sources.quotes("reproduction", item.command))
            for item in facts.reproduction
        ),
        "workarounds": tuple(
            Remedy.based_on(item, repo=repo, number=facts.number, url=sources.address(item.source))
            for item in remedies
        ),
        "remedies": tuple(
            ReportRemedy.based_on(item, quotes=sources.quotes("workarounds", item.action))
            for item in remedies
        ),
        "fix_quotes": sources.quotes("fix"),
        "regression": tuple(_regression(facts.regression or Regression(), sources)),
    }


def _facts(facts: Facts, sources: Sources) -> Iterator[ReportFact]:
    for gpu in facts.gpus:
        yield _fact(sources, "gpus", "GPU", gpu)
    if facts.gpu_count is not None:
        yield _fact(sources, "gpu_count", "GPUs in use", str(facts.gpu_count), is_only=True)
    for model in facts.models:
        yield _fact(sources, "models", "Model", model)
    for key, version in facts.versions.items():
        yield _fact(sources, f"versions.{key}", VERSIONS[key], version, is_only=True)
    for key, values in facts.backends.items():
        for value in values:
            yield _fact(sources, f"backends.{key}", BACKENDS[key], value)
    for key, value in facts.environment.items():
        yield _fact(sources, f"environment.{key}", key, value, is_only=True)


def _regression(known: Regression, sources: Sources) -> Iterator[ReportFact]:
    for field, label in REGRESSION.items():
        value = getattr(known, field)
        for one in value if isinstance(value, tuple) else (value,) if value else ():
            yield _fact(sources, f"regression.{field}", label, one)


def _fact(sources: Sources, field: str, label: str, value: str, *, is_only: bool = False) -> ReportFact:
    """Return a value with its quotes; `is_only` if all evidence of the field is about this value."""
    quotes = sources.quotes(field, None if is_only else value)
    is_literal = figures_stand(value, quotes)
    return ReportFact(field=field, label=label, value=value, is_literal=is_literal, quotes=quotes)


COMMENTS_MAX = 40
WORDS_CHARS = 160


def timeline(session: Session, stored: StoredIssue, graph: Graph, sources: Sources) -> tuple[Moment, ...]:
    """Return the dated events of the issue, its comments and the pull requests in its graph."""
    issue, moments = stored.issue, list[Moment]()

    def add(at: datetime | None, text: str, source: str, url: str, quote: str = "") -> None:
        if at:
            moments.append(Moment(at=at, text=text, source=source, url=url, quote=quote))

    reason = (issue.state_reason or "").replace("_", " ")
    add(issue.created_at, "opened", "GitHub", issue.url)
    add(issue.closed_at, f"closed as {reason}" if reason else "closed", "GitHub", issue.url)
    why = f" ({issue.gone_reason})" if issue.gone_reason else ""
    add(issue.gone_at, f"no longer on GitHub{why}", "GitHub", issue.url)
    for comment in _chosen_comments(stored.comments, stored.facts):
        lines = (line.strip() for line in comment.body.splitlines())
        first = next((line for line in lines if line and not line.startswith((">", "```", "<!--"))), "")
        is_reporter = comment.author is not None and comment.author == issue.author
        speaker = SPEAKERS["reporter" if is_reporter else _speaker(comment)]
        source = f"comment:{comment.id}"
        quote = clipped(mask_secrets(first), WORDS_CHARS)
        add(comment.created_at, f"comment by {speaker}", source, sources.address(source), quote)
    pulls = [
        node.number for node in graph.nodes[1:] if (node.kind, node.repo) == ("pull_request", stored.repo)
    ]
    for pull in find_heads(session, stored.repo_id, pulls):
        name, source = f"pull request #{pull.number}", key_of(stored.repo, pull.number)
        add(pull.created_at, f"{name} opened", source, pull.url)
        ended = "merged" if pull.merged_at else "closed"
        add(pull.merged_at or pull.closed_at, f"{name} {ended}", source, pull.url)
    return tuple(sorted(moments, key=lambda one: one.at if one.at.tzinfo else one.at.replace(tzinfo=UTC)))


def _chosen_comments(comments: Sequence[CommentRecord], facts: Facts | None) -> list[CommentRecord]:
    """Return up to `COMMENTS_MAX` comments: first those with evidence, then maintainers', then the newest."""
    if len(comments) <= COMMENTS_MAX:
        return list(comments)
    cited = {item.source for item in facts.evidence} if facts else set()
    ranked = sorted(
        enumerate(comments),
        key=lambda pair: (f"comment:{pair[1].id}" not in cited, _speaker(pair[1]) != "maintainer", -pair[0]),
    )
    return [comment for _, comment in ranked[:COMMENTS_MAX]]


def _speaker(comment: CommentRecord) -> str:
    return "maintainer" if comment.author_association in MAINTAINER_ASSOCIATIONS else "other"


MAIN_FIELDS = frozenset({"error", "regression.first_failing", "cause"})
"""What the page of an issue says is missing; it has sections for remedies, fix and environment."""
MAIN_BACKENDS = ("attention", "moe", "quantization")
"""Backends reported as missing; they matter for any failure, the others only if used."""


def not_known(
    facts: Facts | None, fix: FixView, graph: Graph, *, comments_missing: bool
) -> tuple[NotKnown, ...]:
    """Return the missing fields, most important first."""
    missing: Iterable[tuple[str, str]] = [("facts", "Any fact: nothing has been read out of this text.")]
    if facts:
        missing = _missing(facts, fix)
    return tuple(
        NotKnown(field=field, text=text)
        for field, text in (*missing, *_missing_around(graph, comments_missing))
    )


def _missing(facts: Facts, fix: FixView) -> Iterator[tuple[str, str]]:
    if facts.is_failure:
        yield from _missing_remedies(facts)
        yield from _missing_of_failure(facts, fix)
    if not facts.gpus:
        yield "gpus", "GPU."
    elif facts.gpu_count is None:
        yield "gpu_count", "How many GPUs."
    if not facts.models:
        yield "models", "Model."
    for key in VERSION_KEYS:
        if key not in facts.versions:
            yield f"versions.{key}", f"Version of {'the ' if key == 'driver' else ''}{VERSIONS[key]}."
    for key in BACKEND_KEYS:
        if key in MAIN_BACKENDS and not facts.backends.get(key):
            yield f"backends.{key}", f"{BACKENDS[key]}."


def _missing_remedies(facts: Facts) -> Iterator[tuple[str, str]]:
    helping = [item for item in facts.workarounds if item.outcome != "fails"]
    if not helping:
        yield "workarounds", "A remedy: none is reported to help."
    for item in helping:
        if not item.confirmed_by:
            yield "workarounds.confirmed_by", f"Whether it helped others: {item.words}"
        if item.conditions == Conditions():
            yield "workarounds.conditions", f"Under which conditions it helps: {item.words}"


def _missing_of_failure(facts: Facts, fix: FixView) -> Iterator[tuple[str, str]]:
    error, outcomes = facts.error, {item.outcome for item in facts.reproduction}
    is_guess = bool(facts.cause) and all(item.certainty == "hypothesis" for item in facts.cause)
    rows = (
        (fix.state == "unknown", "fix.state", "Whether it is fixed."),
        (fix.pr is None, "fix.pr", "A pull request that fixes it: none is known."),
        (fix.released_in is None, "fix.released_in", "A release that holds a fix: none is known."),
        *(
            (not getattr(facts.regression, field, None), f"regression.{field}", f"{label}.")
            for field, label in REGRESSION.items()
        ),
        (error is None, "error", "Error: no error line was found in the text."),
        (error is not None and error.frame is None, "error.frame", "Where the error is raised."),
        (not facts.cause, "cause", "Cause."),
        (is_guess, "cause", "A proven cause: only a hypothesis is stated."),
        ("fails" not in outcomes, "reproduction.fails", "A command that fails."),
        ("works" not in outcomes, "reproduction.works", "A command that works."),
    )
    yield from ((field, text) for is_missing, field, text in rows if is_missing)


def _missing_around(graph: Graph, comments_missing: bool) -> Iterator[tuple[str, str]]:
    if comments_missing:
        yield "comments", "What all comments say: GitHub counts more of them than are stored."
    for node in graph.nodes[1:]:
        if node.kind == "unknown":
            name = f"#{node.number}" if node.repo == graph.nodes[0].repo else node.key
            yield f"graph.{node.key}", f"Title and state of {name}: it is not stored."


def main_unknowns(facts: Facts, fix: FixView) -> tuple[str, ...]:
    """Return the sentences for the missing fields that matter for any failure."""
    return tuple(text for field, text in _missing(facts, fix) if field in MAIN_FIELDS)


BODY_CHARS_MAX = 70_000
"""GitHub's own limit is 65,536."""
QUOTES_MAX = 40
_REFERENCE = re.compile(r"(?<![\w/&\[.-])(?:[A-Za-z0-9][\w-]{0,50}/[\w.-]{1,100})?#\d{1,10}\b")
"""`#1`, or `owner/name#1` of another repository."""


def issue_markdown(issue: IssueAnswer) -> str:
    """Render the issue as Markdown, remedies first and its own text last."""
    return render_markdown("issue.md", issue=issue, quotes_max=QUOTES_MAX, body_max=BODY_CHARS_MAX)


def report_markdown(report: Report) -> str:
    """Render the report as Markdown with headings, for sharing."""
    facts = (*report.facts, *report.regression, *report.remedies, *((report.error,) if report.error else ()))
    quotes = tuple(quote for fact in facts for quote in fact.quotes)
    return render_markdown(
        "report.md",
        report=report,
        summary=report.summary if figures_stand(report.summary, quotes) else "",
        linked=partial(_linked, report.repo),
        reference=partial(_reference, report.repo),
    )


def _linked(repo: str, text: str) -> str:
    """Escape a sentence that may contain text from issues, and link its issue numbers."""
    return _REFERENCE.sub(lambda found: _reference(repo, found[0]), escape(text))


def _reference(repo: str, name: str) -> str:
    """Return a link for an issue reference, or inline code if `name` is not one."""
    owner, _, digits = name.rpartition("#")
    address = f"https://github.com/{owner or repo}/issues/{digits}"
    return f"[{name}]({address})" if _REFERENCE.fullmatch(name) else code(name)
