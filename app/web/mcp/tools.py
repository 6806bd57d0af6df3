"""What the five tools do: check what they are given, ask `knowledge`, make the answer short.

In: arguments as the protocol's library has checked them against the tool's schema. Out: a `Fitted` answer.
Raises the errors of `app.errors`, whose messages are fit for a model to read and act on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.errors import InputError, NotFoundError
from app.extract.facts import Facts
from app.extract.versions import ordered
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.log_input import check_is_text, clean_log, clean_words
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.digest.digest import make_digest
from app.knowledge.digest.tables import digest_markdown
from app.knowledge.iso_week import IsoWeek
from app.knowledge.issue.browse import browse
from app.knowledge.issue.facets import IssueQuery, ListedIssue
from app.knowledge.issue.markdown import named_values, report_markdown
from app.knowledge.issue.report import make_report
from app.knowledge.issue.shapes import IssueAnswer
from app.knowledge.issue.view import view_issue
from app.knowledge.remedies import remedies_of
from app.knowledge.text.markdown import render_markdown
from app.knowledge.text.quoting import NOTICE
from app.knowledge.version.known_issues import known_issues
from app.knowledge.version.shapes import KnownIssue
from app.web.deps import Services
from app.web.mcp.budget import Fitted, fitted
from app.web.mcp.shapes import (
    Answer,
    DiagnosisAnswer,
    FixAnswer,
    IssueHit,
    IssueShort,
    KnownAnswer,
    KnownShort,
    QuoteShort,
    RemedyShort,
    SearchAnswer,
    StepShort,
    cause_short,
    fix_short,
    match_short,
    remedy_short,
)

MATCHES_MAX = 5
REMEDIES_MAX = 8
QUOTES_MAX = 12
QUOTE_CHARS = 300

_VERSION = re.compile(r"v?[0-9A-Za-z][0-9A-Za-z.+_!-]{0,99}")


_TEMPLATES: dict[type[Answer], str] = {
    SearchAnswer: "tool_search.md",
    IssueShort: "tool_issue.md",
    FixAnswer: "tool_fix.md",
    KnownAnswer: "tool_known.md",
}


def answer_text(answer: Answer) -> str:
    """An answer as Markdown; the most important line stands first, since a small budget cuts the end."""
    values = named_values(answer, answer.related) if isinstance(answer, IssueShort) else ()
    return render_markdown(_TEMPLATES[type(answer)], answer=answer, values=values)


@dataclass(frozen=True, slots=True)
class Hints:
    """What a caller knows of the run beside the log."""

    vllm_version: str | None = None
    gpu: str | None = None
    model: str | None = None


def diagnose_log(services: Services, log: str, hints: Hints, max_chars: int) -> Fitted:
    """The known issue behind a crash log.

    Raises:
        InputError: the log is empty, too large or no text; or the version is none.
    """
    check_is_text(log)
    found = diagnose(
        services.store,
        clean_log(log),
        repos=services.settings.repo,
        vllm_version=known_version(hints.vllm_version),
        gpu=_words(hints.gpu),
        model=_words(hints.model),
        limit=MATCHES_MAX,
    )
    return fitted(_diagnosis(found), diagnosis_markdown(found), max_chars)


def _diagnosis(found: Diagnosis) -> DiagnosisAnswer:
    return DiagnosisAnswer(
        verdict=found.verdict,
        headline=found.headline,
        root_cause=cause_short(found.root_cause) if found.root_cause else None,
        workarounds=tuple(remedy_short(item) for item in found.workarounds[:REMEDIES_MAX]),
        matches=tuple(match_short(item) for item in found.matches[:MATCHES_MAX]),
        next_steps=tuple(StepShort(text=item.text, command=item.command) for item in found.next_steps),
        issues=found.index.issues,
        as_of=found.index.as_of,
    )


def search_issues(services: Services, query: IssueQuery, limit: int, max_chars: int) -> Fitted:
    """Issues by words and facts, best first.

    Raises:
        InputError: nothing to search by, or the version is none.
    """
    known_version(query.vllm_version)
    if query == IssueQuery(q=query.q) and not query.q.strip():
        raise InputError("query: give words to search by, or a gpu, model, backend or version.")
    page = services.cached(browse, services.default_repo, query, limit=limit)
    answer = SearchAnswer(
        items=tuple(_hit(item) for item in page.items), total=page.total, ignored_words=page.ignored_words
    )
    return fitted(answer, answer_text(answer), max_chars)


def _hit(item: ListedIssue) -> IssueHit:
    return IssueHit(
        number=item.number,
        repo=item.repo,
        title=item.title,
        url=item.url,
        state=item.state,
        error=item.error,
        gpus=item.gpus,
        models=item.models,
        version=item.vllm_version,
        fix_state=item.fix.state if item.fix else None,
        remedy=item.remedy.action if item.remedy else "",
    )


def get_issue(services: Services, number: int, repo: str | None, max_chars: int) -> Fitted:
    """What is known of one issue.

    Raises:
        NotFoundError: it is not stored, or the repository is not known here.
    """
    found = view_issue(services.store, known_repo(services, repo), number)
    answer = _issue(found)
    return fitted(answer, answer_text(answer), max_chars)


def _issue(found: IssueAnswer) -> IssueShort:
    facts = found.facts or Facts(number=found.number)
    error = facts.error
    told = f"{error.type}: {error.message}" if error and error.type else error.message if error else ""
    return IssueShort(
        number=found.number,
        repo=found.repo,
        url=found.url,
        title=found.title,
        state=found.state,
        state_reason=found.state_reason,
        created_at=found.created_at,
        updated_at=found.updated_at,
        failure_kind=facts.failure_kind if found.facts else None,
        summary=facts.summary,
        error=told,
        fix=fix_short(found.fix),
        workarounds=_remedies(found),
        cause=tuple(item.text for item in facts.cause),
        gpus=facts.gpus,
        models=facts.models,
        backends=facts.backends,
        versions=facts.versions,
        regression=facts.regression,
        related=facts.related,
        quotes=tuple(
            QuoteShort(field=item.field, value=item.value, quote=item.quote[:QUOTE_CHARS], source=item.source)
            for item in facts.evidence[:QUOTES_MAX]
        ),
    )


def _remedies(found: IssueAnswer) -> tuple[RemedyShort, ...]:
    told = remedies_of(found.facts, repo=found.repo, url=found.url) if found.facts else ()
    return tuple(remedy_short(item) for item in told[:REMEDIES_MAX])


def get_fix_status(
    services: Services, number: int, vllm_version: str | None, repo: str | None, max_chars: int
) -> Fitted:
    """The fix of an issue, seen from a version where one is given.

    Raises:
        NotFoundError: the issue is not stored.
        InputError: the version is none.
    """
    version = known_version(vllm_version)
    found = view_issue(
        services.store,
        known_repo(services, repo),
        number,
        vllm_version=version,
        versions_of=services.default_repo,
    )
    answer = FixAnswer(
        number=number,
        repo=found.repo,
        url=found.url,
        title=found.title,
        state=found.state,
        vllm_version=version,
        fix=fix_short(found.fix),
        workarounds=_remedies(found),
    )
    return fitted(answer, answer_text(answer), max_chars)


def known_issues_of_version(services: Services, version: str, limit: int, max_chars: int) -> Fitted:
    """What fails in a version.

    Raises:
        InputError: the text is no version.
    """
    asked = known_version(version)
    if asked is None:
        raise InputError("version: give a vLLM release such as 0.19.0, a build, or a commit.")
    page = services.cached(known_issues, services.default_repo, asked, limit=limit)
    if not page.items and ordered(asked) is None:
        raise InputError(f"version: no stored issue names {asked}. Give a vLLM release such as 0.19.0.")
    answer = KnownAnswer(
        version=page.version,
        is_ordered=page.is_ordered,
        total=page.total,
        items=tuple(_known(item) for item in page.items),
    )
    return fitted(answer, answer_text(answer), max_chars)


def _known(item: KnownIssue) -> KnownShort:
    return KnownShort(
        number=item.number,
        title=item.title,
        url=item.url,
        state=item.state,
        basis=item.basis,
        standing=item.standing,
        error=item.error,
        released_in=item.fix.released_in,
        remedy=item.remedy.action if item.remedy else "",
    )


def issue_report(services: Services, repo: str | None, number: int) -> str:
    """The whole report on an issue as Markdown.

    Raises:
        NotFoundError: it is not stored.
        PullRequestError: it is a pull request.
    """
    told = make_report(services.store, known_repo(services, repo), number)
    return f"{NOTICE}\n\n{report_markdown(told)}"


def week_digest(services: Services, week: str) -> str:
    """The digest of an ISO week of the default repository as Markdown.

    Raises:
        WeekError: it is no week.
    """
    told = services.cached(make_digest, services.default_repo, IsoWeek.parse(week))
    return digest_markdown(told)


def known_repo(services: Services, repo: str | None) -> str:
    """The repository that is meant, as it is written here.

    Raises:
        NotFoundError: it is not one of the configured ones.
    """
    if not repo:
        return services.default_repo
    found = next((name for name in services.settings.repo if name.lower() == repo.strip().lower()), None)
    if found is None:
        raise NotFoundError(f"repo: only issues of {', '.join(services.settings.repo)} are known here.")
    return found


def known_version(text: str | None) -> str | None:
    """A version as a person writes it; None for none.

    Raises:
        InputError: neither a release, nor a build, nor a commit.
    """
    told = (text or "").strip()
    if not told:
        return None
    if not _VERSION.fullmatch(told) or not (ordered(told) or any(char.isdigit() for char in told)):
        raise InputError("version: this is none. Give a release such as 0.19.0, a build, or a commit.")
    return told


def _words(text: str | None) -> str | None:
    return clean_words(text or "").strip() or None
