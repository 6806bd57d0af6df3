"""Addresses on the configured API origin: scheme, host and port. Nothing is asked anywhere else.

Links and redirects come from the other side; each is checked here before a request is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from app.errors import GitHubError

_DEFAULT_PORTS = {"http": 80, "https": 443}


class Origin:
    """Where GitHub's API is, and what moved on it.

    Args:
        api_url: `https://api.github.com`, or an enterprise server's address with its path.
    """

    def __init__(self, api_url: str) -> None:
        self._base = httpx.URL(api_url.rstrip("/"))
        self._path = self._base.path.rstrip("/")
        self._moved: dict[str, str] = {}

    def __str__(self) -> str:
        return str(self._base.copy_with(path="", query=None)).rstrip("/")

    def address(self, target: str, params: Mapping[str, str | int] | None = None) -> httpx.URL:
        """The address of a path below the API's, or of a link that was followed before.

        Raises:
            GitHubError: the link is not on this origin.
        """
        if not target.startswith("/"):
            return self.checked(httpx.URL(target))
        for old, new in self._moved.items():
            if target == old or target.startswith(f"{old}/"):
                target = new + target.removeprefix(old)
                break
        url = self._base.copy_with(path=self._path + target)
        return url.copy_merge_params(dict(params)) if params else url

    def has(self, url: str) -> bool:
        """Whether an address that was kept from an earlier run is on this origin."""
        try:
            self.checked(httpx.URL(url))
        except (GitHubError, httpx.InvalidURL):
            return False
        return True

    def redirected(self, asked: httpx.URL, status: int, location: str | None) -> httpx.URL:
        """Where an answer redirects to; a move for good is remembered.

        Raises:
            GitHubError: it leads away, or names no address.
        """
        try:
            goal = self.checked(asked.join(location or ""))
        except httpx.InvalidURL:
            location = None
        if not location:
            raise GitHubError(f"GitHub redirects {short_path(asked)} to no address")
        if status in {301, 308}:
            self._remember_move(asked.path, goal.path)
        return goal

    def next_link(self, asked: httpx.URL, headers: httpx.Headers) -> str | None:
        """The address behind `Link: rel="next"`, as it stands; None at a list's end.

        Raises:
            GitHubError: it leads away, or cannot be read.
        """
        try:
            target = httpx.Response(200, headers=headers).links.get("next", {}).get("url")
            return str(self.checked(asked.join(target))) if target else None
        except (httpx.InvalidURL, KeyError):
            raise GitHubError(f"GitHub's link after {short_path(asked)} cannot be read") from None

    def checked(self, url: httpx.URL) -> httpx.URL:
        """The address itself, if it is on this origin and carries no name or password.

        Raises:
            GitHubError: it leads away.
        """
        if _place(url) != _place(self._base) or url.userinfo:
            raise GitHubError(f"GitHub's answer leads away from {self}; it was not followed")
        return url

    def _remember_move(self, old: str, new: str) -> None:
        # A renamed repository redirects each of its old paths; from now on the new one is asked. A path that
        # ends in a number may also be one issue's that was transferred, so it says nothing of the rest.
        old, new = old.removeprefix(self._path), new.removeprefix(self._path)
        parts = old.split("/")
        if parts[1:2] == ["repos"] and len(parts) >= 4 and not parts[-1].isdigit():
            prefix = "/".join(parts[:4])
            tail = old.removeprefix(prefix)
            if new.endswith(tail):
                self._moved[prefix] = new.removesuffix(tail)


def _place(url: httpx.URL) -> tuple[str, bytes, int | None]:
    # `host` would decode a name such as `xn--a`, and throw where that is malformed.
    return url.scheme, url.raw_host, url.port or _DEFAULT_PORTS.get(url.scheme)


def short_path(url: httpx.URL) -> str:
    """An address as messages name it: its path alone."""
    return url.path[:120]
