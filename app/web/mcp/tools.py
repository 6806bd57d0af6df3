"""The six tools: their arguments as a model sees them, the question to `knowledge`, the answer made short.

The description of a tool is its docstring. Raises the errors of `app.errors`, whose messages are fit for a
model to read and act on. The library runs the tools in its thread pool.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.types import CallToolResult
from pydantic import BaseModel, BeforeValidator, Field

from app.config import LOG_LIMIT_BYTES
from app.errors import InputError, NotFoundError
from app.extract.versions import check_version, ordered
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.log_input import check_is_text, clean_log, clean_words
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.digest.digest import digest_markdown, make_digest
from app.knowledge.iso_week import IsoWeek
from app.knowledge.issue.browse import IssuePage, IssueQuery, browse
from app.knowledge.issue.report import issue_markdown, make_report, report_markdown
from app.knowledge.issue.view import view_issue
from app.knowledge.markdown import NOTICE, render_markdown, without_surrogates
from app.knowledge.stack.stack import make_stack
from app.knowledge.stack.upgrade import Upgrade, compare_versions, upgrade_markdown
from app.knowledge.version.regressions import KnownPage, known_issues
from app.web.answers.schemas import NUMBER_MAX, IssueDocument, issue_document
from app.web.deps import Services
from app.web.mcp.shapes import (
    DEFAULT_ANSWER_CHARS,
    MAX_ANSWER_CHARS,
    MIN_ANSWER_CHARS,
    fitted,
)

MATCHES_MAX = 5

TOOLS: dict[str, tuple[str, type[BaseModel]]] = {
    "diagnose_log": ("Diagnose a vLLM crash log", Diagnosis),
    "search_issues": ("Search vLLM issues", IssuePage),
    "get_issue": ("Get a vLLM issue", IssueDocument),
    "get_fix_status": ("Whether an issue is fixed for a version", IssueDocument),
    "known_issues_of_version": ("Known failures of a vLLM version", KnownPage),
    "compare_versions": ("What an upgrade of vLLM fixes and breaks", Upgrade),
}
"""The tools by name, each with its title and the shape of its answer."""


def _clean(value: Any) -> Any:
    """A text without lone surrogates, which the library refuses; other values as they are."""
    return clean_words(value) if isinstance(value, str) else value


def _log_text(value: Any) -> Any:
    """A log without lone surrogates; its control characters are left to the reading of logs."""
    return without_surrogates(value) if isinstance(value, str) else value


LogText = Annotated[
    str,
    BeforeValidator(_log_text),
    Field(
        min_length=1,
        description="the complete log as printed, including start-up and all processes; at most "
        f"{LOG_LIMIT_BYTES // 1048576} MiB; it is not stored",
    ),
]
Hint = Annotated[str, BeforeValidator(_clean), Field(max_length=300)]
VersionHint = Annotated[
    Hint | None, Field(description="vLLM version in use, such as 0.19.0; decides whether an upgrade helps")
]
GpuHint = Annotated[Hint | None, Field(description="GPU, such as H100; used if the log does not print it")]
ModelHint = Annotated[
    Hint | None, Field(description="model, such as Qwen/Qwen3-8B; used if the log does not print it")
]
GpuFilter = Annotated[Hint | None, Field(description="only issues with this GPU, such as H100")]
ModelFilter = Annotated[Hint | None, Field(description="only issues with this model or family, such as qwen")]
BackendFilter = Annotated[
    Hint | None, Field(description="only issues with this backend or quantization, such as FlashInfer or fp8")
]
VersionFilter = Annotated[Hint | None, Field(description="only issues that fail in this vLLM version")]
Limit = Annotated[int, Field(ge=1, le=50, description="maximum number of issues")]
RepoName = Annotated[Hint | None, Field(description="owner/name; default: the default repository")]
Number = Annotated[int, Field(ge=1, le=NUMBER_MAX, description="issue number on GitHub, without #")]
ResourceNumber = Annotated[int, Field(ge=1, le=NUMBER_MAX)]
MaxChars = Annotated[
    int,
    Field(
        ge=MIN_ANSWER_CHARS,
        le=MAX_ANSWER_CHARS,
        description="maximum length of the answer in characters; `truncated` counts what was cut",
    ),
]


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools, each with the signature and the description that a model sees."""

    services: Services

    def diagnose_log(
        self,
        log: LogText,
        vllm_version: VersionHint = None,
        gpu: GpuHint = None,
        model: ModelHint = None,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> CallToolResult:
        """Finds the known vLLM issue behind a crash log.

        Returns cause, verdict, most similar issues with reasons, workarounds and fix state. Use it for
        any vLLM error, traceback or server log. A short question is accepted too; its verdict is never
        `same`.
        """
        check_is_text(log)
        found = diagnose(
            self.services.store,
            clean_log(log),
            repos=self.services.settings.repo,
            vllm_version=known_version(vllm_version, "vllm_version"),
            gpu=_words(gpu),
            model=_words(model),
            limit=MATCHES_MAX,
            embed=self.services.embed,
        )
        return fitted("diagnose_log", found, diagnosis_markdown(found), max_chars)

    def search_issues(
        self,
        query: Annotated[
            Hint, Field(description="words, an error line, a flag or #number; may be empty with a filter")
        ],
        gpu: GpuFilter = None,
        model: ModelFilter = None,
        backend: BackendFilter = None,
        version: VersionFilter = None,
        limit: Limit = 10,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> CallToolResult:
        """Finds vLLM issues by text, GPU, model, backend and version.

        Use it for questions without a log, such as which issues mention a feature on a GPU. For a log use
        diagnose_log.
        """
        known_version(version)
        filters = {"gpu": gpu, "model": model, "backend": backend, "vllm_version": version}
        asked = IssueQuery(q=query, **{name: value or None for name, value in filters.items()})
        if asked == IssueQuery(q=query) and not query.strip():
            raise InputError("query: give words to search by, or a gpu, model, backend or version.")
        page = self.services.cached(browse, self.services.default_repo, asked, limit=limit)
        return fitted("search_issues", page, render_markdown("tool_search.md", page=page), max_chars)

    def get_issue(
        self, number: Number, repo: RepoName = None, max_chars: MaxChars = DEFAULT_ANSWER_CHARS
    ) -> CallToolResult:
        """Returns the facts of one issue, each with the text it was extracted from.

        The facts are error, stated cause, workarounds with outcome, fix state, GPUs, models, versions,
        regression range. Use it for an issue number from a search, a diagnosis or the user.
        """
        found = view_issue(self.services.store, known_repo(self.services, repo), number)
        without_text = found.model_copy(update={"body": ""})
        return fitted("get_issue", issue_document(found), issue_markdown(without_text), max_chars)

    def get_fix_status(
        self,
        number: Number,
        vllm_version: VersionHint = None,
        repo: RepoName = None,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> CallToolResult:
        """Returns whether an issue is fixed, by which pull request, and in which release.

        Also returns whether upgrading from vllm_version helps (`for_you`), and workarounds.
        """
        version = known_version(vllm_version, "vllm_version")
        found = view_issue(
            self.services.store,
            known_repo(self.services, repo),
            number,
            vllm_version=version,
            versions_of=self.services.default_repo,
        )
        text = render_markdown("tool_fix.md", issue=found, version=version)
        return fitted("get_fix_status", issue_document(found), text, max_chars)

    def known_issues_of_version(
        self,
        version: Annotated[Hint, Field(description="vLLM release such as 0.19.0, build, or commit")],
        limit: Limit = 10,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> CallToolResult:
        """Returns known failures of a vLLM version that were open in it or fixed only later.

        Most reported first, each with the release that fixes it and the best workaround. Use it before an
        upgrade.
        """
        asked = known_version(version)
        if asked is None:
            raise InputError("version: give a vLLM release such as 0.19.0, a build, or a commit.")
        page = self.services.cached(known_issues, self.services.default_repo, asked, limit=limit)
        if not page.items and ordered(asked) is None:
            raise InputError(f"version: no stored issue names {asked}. Give a vLLM release such as 0.19.0.")
        text = render_markdown("tool_known.md", page=page)
        return fitted("known_issues_of_version", page, text, max_chars)

    def compare_versions(
        self,
        from_version: Annotated[Hint, Field(description="release to upgrade from, such as 0.21.0")],
        to_version: Annotated[Hint, Field(description="release to upgrade to, such as 0.24.0")],
        gpu: GpuHint = None,
        model: ModelHint = None,
        args: Annotated[Hint | None, Field(description="options of `vllm serve`; empty for none")] = None,
        max_chars: MaxChars = DEFAULT_ANSWER_CHARS,
    ) -> CallToolResult:
        """Returns what an upgrade of vLLM fixes, breaks and leaves open, for one GPU, model and arguments.

        With these it also returns a verdict, what nobody reported, and the newest release without a known
        break. An empty list does not prove that nothing breaks. For one version use known_issues_of_version.
        """
        stack = make_stack(None, gpu, model, args)
        found = self.services.cached(
            compare_versions,
            self.services.default_repo,
            known_version(from_version, "from_version") or "",
            known_version(to_version, "to_version") or "",
            stack.at(from_version) if stack else None,
        )
        return fitted("compare_versions", found, upgrade_markdown(found), max_chars)


def issue_report(services: Services, repo: str | None, number: int) -> str:
    """The whole report on an issue as Markdown."""
    report = make_report(services.store, known_repo(services, repo), number)
    return f"{NOTICE}\n\n{report_markdown(report)}"


def week_digest(services: Services, week: str) -> str:
    """The digest of an ISO week of the default repository as Markdown."""
    return digest_markdown(services.cached(make_digest, services.default_repo, IsoWeek.parse(week)))


def known_repo(services: Services, repo: str | None) -> str:
    """The repository that is meant, as it is written here."""
    if not repo:
        return services.default_repo
    found = next((name for name in services.settings.repo if name.lower() == repo.strip().lower()), None)
    if found is None:
        raise NotFoundError(f"repo: only issues of {', '.join(services.settings.repo)} are known here.")
    return found


def known_version(text: str | None, argument: str = "version") -> str | None:
    """A version as a person writes it; None for none. `argument` is what a refusal calls it."""
    try:
        return check_version((text or "").strip()) or None
    except ValueError as error:
        raise InputError(f"{argument}: {error}.") from None


def _words(text: str | None) -> str | None:
    return clean_words(text or "").strip() or None
