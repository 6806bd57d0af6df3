"""What a request is about: a repository, and the reader's stack; its questions, pages and links."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate

from fastapi import Depends
from fastapi.responses import HTMLResponse

from app.knowledge.freshness import Overview
from app.knowledge.stack.cases import affects_issues
from app.knowledge.stack.shapes import Affects
from app.knowledge.stack.stack import Stack, stack_words, write_stack
from app.store.session import Store
from app.web.answers.parameters import ChosenRepo, StackDep
from app.web.deps import Asked, Found, Services, ServicesDep
from app.web.views.render import render_page, with_repo


@dataclass(frozen=True, slots=True)
class RepoContext:
    """The repository of a request, and the reader's stack if the request names one."""

    services: Services
    repo: str
    stack: Stack | None = None

    def cached(
        self,
        question: Callable[Concatenate[Store, str, Asked], Found],
        *args: Asked.args,
        **options: Asked.kwargs,
    ) -> Found:
        """Return `question(store, repo, ...)`, see `Services.cached`."""
        return self.services.cached(question, self.repo, *args, **options)

    @property
    def overview(self) -> Overview:
        """The repository's size and the age of its data."""
        return self.services.overview(self.repo)

    def affects(self, numbers: Iterable[int]) -> dict[int, Affects] | None:
        """Return by number whether each issue affects the stack; None without a stack."""
        return dict(self.cached(affects_issues, self.stack, tuple(numbers))) if self.stack else None

    def address(self, path: str, **query: str | None) -> str:
        """Return a page's URL that keeps repository and stack."""
        return with_repo(
            path, self.repo, self.services.default_repo, **{"stack": write_stack(self.stack), **query}
        )

    def render(
        self,
        template: str,
        *,
        path: str = "",
        query: Mapping[str, str | None] | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """Render a page with the age of its data; its links keep the repository and stack.

        Args:
            path: the page's own path, for `repo_links` to the same page of each repository.
            query: query parameters that those links keep, if not empty.
        """
        default, *others = self.services.settings.repo
        mine, kept = write_stack(self.stack), query or {}
        common = {
            "repo": self.repo,
            "default_repo": default,
            "overview": self.overview,
            "at": self.address,
            "suffix": self.address(""),
            "nav": with_repo("", default, default, stack=mine),
            "repo_links": [
                (name, with_repo(path, name, default, **{**kept, "stack": mine}))
                for name in (default, *others)
                if others
            ],
            "stack": self.stack,
            "stack_text": mine,
            "stack_parts": tuple(stack_words(self.stack)) if self.stack else (),
            "without_stack": with_repo(path, self.repo, default, **kept),
        }
        return render_page(template, status=status, headers=headers, **common | values)


async def _repo_context(services: ServicesDep, repo: ChosenRepo) -> RepoContext:
    return RepoContext(services, repo)


async def _stack_context(services: ServicesDep, repo: ChosenRepo, stack: StackDep) -> RepoContext:
    return RepoContext(services, repo, stack)


ContextDep = Annotated[RepoContext, Depends(_repo_context)]
"""The repository in the query, or the default one."""
StackContextDep = Annotated[RepoContext, Depends(_stack_context)]
"""The same with the stack in the query."""
