"""The address by which this server was called, to be told to others.

Several repositories on one page: which one is shown, and the addresses of the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request

from app.config import Settings

_PLAIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]{1,260}/[A-Za-z0-9._~/-]{0,200}")
LOCAL = "http://localhost:8000/"


def base_address(request: Request) -> str:
    """Its base with a slash at the end; a Host header that is no plain name is not repeated."""
    base = str(request.base_url)
    return base if _PLAIN.fullmatch(base) else LOCAL


@dataclass(frozen=True, slots=True)
class RepoChoice:
    """A repository that the page can show; its address, and whether it is shown now."""

    repo: str
    address: str
    is_on: bool


def repo_switch(settings: Settings, path: str, shown: str, **query: str | None) -> tuple[RepoChoice, ...]:
    """The configured repositories to choose from; none where there is one only.

    Args:
        path: of the page; the default repository needs no more.
        query: what else goes along, where it is not empty.
    """
    if len(settings.repo) == 1:
        return ()
    return tuple(
        RepoChoice(repo, with_repo(settings, path, repo, **query), repo == shown) for repo in settings.repo
    )


def with_repo(settings: Settings, path: str, repo: str, **query: str | None) -> str:
    """The address of a page of a repository: the default one is not named in it."""
    told = {name: value for name, value in query.items() if value}
    if repo != settings.default_repo:
        told["repo"] = repo
    return f"{path}?{urlencode(told)}" if told else path
