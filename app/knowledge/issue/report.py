"""All that is known of one issue, each sentence with its source.

In: a stored issue. Out: a `Report`, from which the page, the Markdown and the JSON are made. Nothing is
said in it that no text says: a value comes with its passage, a relation with its words, and what is missing
is named as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.errors import PullRequestError
from app.extract.facts import Evidence, Facts
from app.extract.redaction.redact import mask_secrets
from app.knowledge.freshness import freshness
from app.knowledge.issue.graph import graph_of
from app.knowledge.issue.quotes import Sources, figures_stand
from app.knowledge.issue.relations import relations
from app.knowledge.issue.shapes import (
    CommandExample,
    GitHubFacts,
    Graph,
    IssueAnswer,
    Moment,
    NotKnown,
    Quote,
    Report,
    ReportError,
    ReportFact,
    ReportRemedy,
    StatedCause,
)
from app.knowledge.issue.stored import load_issue, load_links
from app.knowledge.issue.timeline import timeline
from app.knowledge.issue.unknowns import not_known
from app.knowledge.issue.view import tell_issue
from app.knowledge.labels import BACKENDS, REGRESSION, VERSIONS
from app.knowledge.remedies import OUTCOME_RANK
from app.store.session import Store

ALIKE_MAX = 12
RELATED_MAX = 200


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
        answer = tell_issue(session, stored, vllm_version=vllm_version, versions_of=versions_of)
        if answer.is_pull_request:
            raise PullRequestError(
                f"#{number} is a pull request. Reports are made of issues: give an issue's."
            )
        links = load_links(session, stored.repo_id, repo, number)
        found = relations(session, stored.repo_id, repo, number, links)[:RELATED_MAX]
        alike = [item for item in found if item.kind == "similar"][:ALIKE_MAX]
        sources = Sources(stored.issue.url, stored.texts())
        graph = graph_of(session, stored, links, sources, alike)
        moments = timeline(session, stored, graph, sources)
    missing = answer.origin == "github" and len(stored.comments) < answer.comments
    unknown = not_known(answer.facts, answer.fix, graph, comments_missing=missing)
    return _assemble(answer, stored.facts, sources, graph, moments, unknown).model_copy(
        update={"as_of": freshness(store, repo).as_of}
    )


def _assemble(
    answer: IssueAnswer,
    raw: Facts | None,
    sources: Sources,
    graph: Graph,
    moments: tuple[Moment, ...],
    unknown: tuple[NotKnown, ...],
) -> Report:
    """The parts put together; `raw` holds the facts unmasked, whose evidence finds its place."""
    theirs = {name: getattr(answer, name) for name in GitHubFacts.model_fields}
    common = {
        **theirs,
        "fix": answer.fix,
        "graph": graph,
        "timeline": moments,
        "not_known": unknown,
        "as_of": None,
    }
    facts = answer.facts
    if facts is None or raw is None:
        return Report(failure_kind=None, summary="", **common)
    teller = _Teller(raw.evidence, sources)
    return Report(
        failure_kind=facts.failure_kind if facts.is_failure else None,
        summary=facts.summary,
        facts=tuple(_facts(facts, teller)),
        error=_error(facts, teller),
        cause=tuple(
            StatedCause(text=item.text, certainty=item.certainty, quotes=teller.quotes("cause", item.text))
            for item in facts.cause
        ),
        examples=tuple(
            CommandExample(
                command=item.command,
                outcome=item.outcome,
                quotes=teller.quotes("reproduction", item.command),
            )
            for item in facts.reproduction
        ),
        remedies=_remedies(facts, teller),
        fix_quotes=teller.quotes("fix"),
        regression=tuple(_regression(facts, teller)),
        **common,
    )


class _Teller:
    """Finds the passages that say a value."""

    def __init__(self, evidence: Sequence[Evidence], sources: Sources) -> None:
        self._evidence = evidence
        self._sources = sources

    def quotes(self, field: str, value: str | None = None) -> tuple[Quote, ...]:
        """The passages of a field (and of what is below it), or of just one value of it."""
        said = [item for item in self._evidence if item.field == field or item.field.startswith(f"{field}.")]
        if value is not None:
            said = [item for item in said if _same(mask_secrets(item.value), value)]
        return self._sources.quotes(said)

    def fact(self, field: str, label: str, value: str, *, whole: bool = False) -> ReportFact:
        """A value with its passages; `whole` where the evidence of the field is about this value alone."""
        quotes = self.quotes(field, None if whole else value)
        return ReportFact(
            field=field, label=label, value=value, is_literal=figures_stand(value, quotes), quotes=quotes
        )


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _facts(facts: Facts, teller: _Teller) -> Iterator[ReportFact]:
    for gpu in facts.gpus:
        yield teller.fact("gpus", "GPU", gpu)
    if facts.gpu_count is not None:
        yield teller.fact("gpu_count", "GPUs in use", str(facts.gpu_count), whole=True)
    for model in facts.models:
        yield teller.fact("models", "Model", model)
    for key, version in facts.versions.items():
        yield teller.fact(f"versions.{key}", VERSIONS[key], version, whole=True)
    for key, values in facts.backends.items():
        for value in values:
            yield teller.fact(f"backends.{key}", BACKENDS[key], value)
    for key, value in facts.environment.items():
        yield teller.fact(f"environment.{key}", key, value, whole=True)


def _error(facts: Facts, teller: _Teller) -> ReportError | None:
    error = facts.error
    if error is None:
        return None
    quotes = teller.quotes("error.message") or teller.quotes("error")
    return ReportError(
        type=error.type,
        message=error.message,
        frame=error.frame,
        wrappers=error.wrappers,
        other=error.other,
        quotes=quotes,
    )


def _remedies(facts: Facts, teller: _Teller) -> tuple[ReportRemedy, ...]:
    found = [
        ReportRemedy(
            action=item.action,
            kind=item.kind,
            outcome=item.outcome,
            conditions=item.conditions,
            by=item.by,
            confirmed_by=item.confirmed_by,
            refuted_by=item.refuted_by,
            quotes=teller.quotes("workarounds", item.action),
        )
        for item in facts.workarounds
    ]
    return tuple(sorted(found, key=lambda item: OUTCOME_RANK[item.outcome]))


def _regression(facts: Facts, teller: _Teller) -> Iterator[ReportFact]:
    for field, label in REGRESSION.items():
        value = getattr(facts.regression, field) if facts.regression else None
        for one in value if isinstance(value, tuple) else (value,) if value else ():
            yield teller.fact(f"regression.{field}", label, one)
