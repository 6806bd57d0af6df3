"""Parameters that several routes take."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator, Field

from app.config import REPO_NAME
from app.web.answers.schemas import NUMBER_MAX, none_if_blank
from app.web.deps import ServicesDep

Number = Annotated[int, Path(ge=1, le=NUMBER_MAX)]
Version = Annotated[
    str | None,
    Query(max_length=100, description="see the fix from this vLLM version"),
    AfterValidator(none_if_blank),
]
RepoName = Annotated[str | None, Field(max_length=140, pattern=f"^{REPO_NAME.pattern}$")]
RepoQuery = Annotated[RepoName, Query(description="owner/name; the default repository without it")]
RepoPart = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]+$", max_length=100)]


async def _check_parts(owner: RepoPart, name: RepoPart) -> None:
    """The two parts of a repository's name in an address; they are checked by their types."""


NAMED_REPO = [Depends(_check_parts)]
"""The dependencies of a route whose address holds `{owner}/{name}`."""


async def _repo_of_path(request: Request, services: ServicesDep) -> str:
    parts = request.path_params
    return f"{parts['owner']}/{parts['name']}" if "owner" in parts else services.default_repo


Repo = Annotated[str, Depends(_repo_of_path)]
"""The repository that an address names, or the default one."""
