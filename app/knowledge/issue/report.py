"""The report on one issue: everything known of it, each statement with its source.

In: a stored issue. Out: a `Report`, from which page, Markdown and JSON are made. Each value comes with its
passage, each relation with its words, and what no text states is listed as not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.errors import PullRequestError
from app.extract.facts import Facts, Regression
from app.knowledge.freshness import freshness
from app.knowledge.issue.graph import issue_graph
from app.knowledge.issue.quotes import Sources, figures_stand
from app.knowledge.issue.shapes import (
    CommandExample,
    GitHubFacts,
    Report,
    ReportError,
    ReportFact,
    ReportRemedy,
    StatedCause,
)
from app.knowledge.issue.stored import load_issue
from app.knowledge.issue.timeline import timeline
from app.knowledge.issue.unknowns import not_known
from app.knowledge.issue.view import build_answer
from app.knowledge.labels import BACKENDS, REGRESSION, VERSIONS
from app.knowledge.remedies import OUTCOME_RANK
from app.store.session import Store

ALIKE_MAX = 12


def make_report(
    store: Store, repo: str, number: int, *, vllm_version: str | None = None, versions_of: str | None = None
) -> Report:
    """The report on a stored issue.

    Args:
        versions_of: the repository whose version `vllm_version` is; the issue's own where it is None.

    Raises:
        NotFoundError: nothing is stored under that number.
        PullRequestError: it is a pull request's number.
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
    return Report(
        **{name: getattr(answer, name) for name in GitHubFacts.model_fields},
        failure_kind=facts.failure_kind if facts and facts.is_failure else None,
        summary=facts.summary if facts else "",
        fix=answer.fix,
        graph=graph,
        timeline=moments,
        not_known=not_known(facts, answer.fix, graph, comments_missing=missing),
        as_of=freshness(store, repo).as_of,
        **(_with_quotes(facts, sources) if facts else {}),
    )


def _with_quotes(facts: Facts, sources: Sources) -> dict[str, Any]:
    """The parts of a report that are read from the issue's texts."""
    error = facts.error
    remedies = sorted(facts.workarounds, key=lambda item: OUTCOME_RANK[item.outcome])
    return {
        "facts": tuple(_facts(facts, sources)),
        "error": error
        and ReportError(**dict(error), quotes=sources.quotes("error.message") or sources.quotes("error")),
        "cause": tuple(
            StatedCause(**dict(item), quotes=sources.quotes("cause", item.text)) for item in facts.cause
        ),
        "examples": tuple(
            CommandExample(**dict(item), quotes=sources.quotes("reproduction", item.command))
            for item in facts.reproduction
        ),
        "remedies": tuple(
            ReportRemedy(
                **item.model_dump(exclude={"source"}), quotes=sources.quotes("workarounds", item.action)
            )
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
    """A value with its passages; `is_only` where all evidence of the field is about this value."""
    quotes = sources.quotes(field, None if is_only else value)
    is_literal = figures_stand(value, quotes)
    return ReportFact(field=field, label=label, value=value, is_literal=is_literal, quotes=quotes)
