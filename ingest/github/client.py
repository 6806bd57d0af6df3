"""GitHub's REST API: one page or one object in, checked and retried.

Nothing is asked but on the configured origin, which alone gets the token: links and redirects come from the
other side, and each is checked first. Passing faults (a lost connection, 5xx, broken JSON) are retried
with a jittered back-off; limits are waited for. What remains is a `GitHubError` without the token in it.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import httpx
import stamina

from app import __version__
from app.errors import GitHubError, RefusedError, UnreachableError
from ingest.github.rate_limits import RequestBudget, SystemClock, Wait, read_wait

_DEFAULT_PORTS = {"http": 80, "https": 443}


class Origin:
    """Where GitHub's API is, and what moved on it."""

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


API_VERSION = "2022-11-28"
BODY_LIMIT_BYTES = 64 * 1024 * 1024
"""A page of 100 issues of 64 KiB, the longest GitHub takes, is a tenth of this."""
ATTEMPTS = 9
"""With waits of 0.1 s doubled up to 20 s: about half a minute of trouble is outlasted."""
FIRST_ATTEMPTS = 3
"""Before GitHub ever answered: a machine without a network should learn it soon."""
MAX_WAIT_S = 3_700.0
"""Longest wait for limits in one request: a primary window is an hour."""
TIMEOUT = httpx.Timeout(30.0, connect=8.0)
BODY_DEADLINE_S = 180.0
"""Longest time for one whole answer, however slowly it drips."""
MAX_REDIRECTS = 4

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list.

    Attributes:
        items: GitHub's rows.
        next_url: an opaque address on the API's origin, or None at the end.
        etag: of this answer.
        not_modified: the list is as it was when the etag was given.
        asked_at: this machine's time just before it was asked.
    """

    items: tuple[Any, ...]
    next_url: str | None
    etag: str | None
    not_modified: bool = False
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: httpx.Headers
    body: bytes
    url: httpx.URL


class _PassingError(Exception):
    """A fault that may be gone at the next try, named without foreign text."""

    def __init__(self, what: str, *, unreachable: bool = False) -> None:
        super().__init__(what)
        self.unreachable = unreachable


def _fault_of(error: httpx.TransportError | httpx.DecodingError) -> str:
    """What went wrong on the way; an error's own words may hold an address with a password."""
    faults = {
        httpx.TimeoutException: "no answer in time",
        httpx.ProxyError: "the proxy refuses the connection",
        httpx.ConnectError: "no connection",
        httpx.DecodingError: "its answer cannot be unpacked",
    }
    return next((words for kind, words in faults.items() if isinstance(error, kind)), "the connection broke")


def quiet_retries() -> None:
    """Keep stamina from logging each retry: what a person must know of them is in the result."""
    stamina.instrumentation.set_on_retry_hooks(())


class GitHubClient:
    """Asks GitHub, one request at a time. To be used in a `with`.

    Args:
        api_url: the API's address, `https://api.github.com` or an enterprise server's.
        token: sent to that origin and nowhere else; None asks anonymously.

    Attributes:
        origin: where the API is, and which repositories were renamed.
        limits: what is left of the hour's requests.
        on_wait: called before each wait that a limit asks for.
        requests, not_modified: how many were made, and of how many the answer was as before.
    """

    def __init__(
        self,
        api_url: str = "https://api.github.com",
        token: str | None = None,
        *,
        max_wait_s: float = MAX_WAIT_S,
        transport: httpx.BaseTransport | None = None,
        clock: SystemClock | None = None,
    ) -> None:
        self.origin = Origin(api_url)
        self.limits = RequestBudget(max_wait_s, token is not None)
        self._token = token
        self._clock = clock or SystemClock()
        self._reached = False
        self._http = httpx.Client(
            transport=transport,
            timeout=TIMEOUT,
            follow_redirects=False,
            headers={
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": API_VERSION,
                "User-Agent": f"vllm-triage/{__version__}",
            },
        )
        self.on_wait: Callable[[Wait], None] | None = None
        self.requests = 0
        self.not_modified = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_fault: object) -> None:
        self._http.close()

    def get_page(
        self, target: str, params: Mapping[str, str | int] | None = None, *, etag: str | None = None
    ) -> Page:
        """One page of a list.

        Args:
            target: a path below the API's address, or a `next_url` that was given before.
            etag: of an earlier answer to the same question; if it still holds, the page says `not_modified`.

        Raises:
            UnreachableError: no connection, after all retries.
            GitHubError: GitHub refused, a limit lasts too long, or the answer cannot be read.
        """
        asked_at = datetime.now(UTC)
        answer, content = self._get(target, params, etag)
        if answer.status == 304:
            self.not_modified += 1
            return Page((), None, etag, not_modified=True, asked_at=asked_at)
        if not isinstance(content, list):
            raise GitHubError(f"GitHub answered no list for {short_path(answer.url)}")
        next_url = self.origin.next_link(answer.url, answer.headers)
        return Page(tuple(content), next_url, answer.headers.get("etag"), asked_at=asked_at)

    def get_object(
        self, target: str, params: Mapping[str, str | int] | None = None
    ) -> Mapping[str, Any] | None:
        """One object, or None if GitHub has no such thing (any more); raises as `get_page` does."""
        return self.find_object(target, params)[0]

    def find_object(
        self, target: str, params: Mapping[str, str | int] | None = None
    ) -> tuple[Mapping[str, Any] | None, str]:
        """One object, None where GitHub has it no more, and the path where redirects ended."""
        answer, content = self._get(target, params, None, missing_ok=True)
        if answer.status == 200 and not isinstance(content, dict):
            raise GitHubError(f"GitHub answered no object for {short_path(answer.url)}")
        return content if answer.status == 200 else None, answer.url.path

    # ---- one request, until it is answered

    def _get(
        self,
        target: str,
        params: Mapping[str, str | int] | None,
        etag: str | None,
        *,
        missing_ok: bool = False,
    ) -> tuple[_Answer, Any]:
        url = self.origin.address(target, params)
        tries = 0

        def may_pass(error: Exception) -> bool:
            nonlocal tries
            tries += 1
            return isinstance(error, _PassingError) and (self._reached or tries < FIRST_ATTEMPTS)

        def ask() -> tuple[_Answer, Any]:
            answer = self._past_limits(url, etag)
            return answer, self._content(answer, missing_ok=missing_ok)

        again = stamina.retry(
            on=may_pass, attempts=ATTEMPTS, timeout=None, wait_initial=0.1, wait_max=20.0, wait_jitter=0.2
        )
        try:
            return again(ask)()
        except _PassingError as error:
            if error.unreachable:
                raise UnreachableError(f"GitHub could not be reached at {self.origin}: {error}") from None
            raise GitHubError(
                f"GitHub does not answer {short_path(url)} ({error}): try again later"
            ) from None

    def _past_limits(self, url: httpx.URL, etag: str | None) -> _Answer:
        waited = 0.0
        refused = 0
        while True:
            self.limits.keep_some(self._clock.now())
            answer = self._past_redirects(url, etag)
            now = self._clock.now()
            wait = read_wait(answer.status, answer.headers, answer.body, now=now, refused=refused)
            if wait is None:
                return answer
            waited += wait.seconds
            refused += 1
            self.limits.check(wait, waited, refused)
            if self.on_wait:
                self.on_wait(wait)
            self._clock.sleep(max(wait.until.timestamp() - self._clock.now(), 0.0))

    def _past_redirects(self, url: httpx.URL, etag: str | None) -> _Answer:
        asked = url
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._send(asked, etag)
            if answer.status not in _REDIRECTS:
                return answer
            asked = self.origin.redirected(asked, answer.status, answer.headers.get("location"))
        raise GitHubError(f"GitHub redirects {short_path(url)} more than {MAX_REDIRECTS} times")

    def _send(self, url: httpx.URL, etag: str | None) -> _Answer:
        headers = {"If-None-Match": etag} if etag else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self.requests += 1
        deadline = time.monotonic() + BODY_DEADLINE_S
        try:
            with self._http.stream("GET", url, headers=headers) as response:
                self._reached = True
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > BODY_LIMIT_BYTES:
                        raise GitHubError(
                            f"GitHub's answer to {short_path(url)} is over {BODY_LIMIT_BYTES >> 20} MiB"
                        )
                    if time.monotonic() > deadline:
                        raise _PassingError("the answer took too long")
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _PassingError(_fault_of(error), unreachable=True) from None
        except UnicodeError:  # httpx looks at a redirect by itself, and throws at a malformed `xn--` name
            raise GitHubError(f"GitHub's redirect of {short_path(url)} leads away to no address") from None
        self.limits.take_in(response.headers, self._clock.now())
        return _Answer(response.status_code, response.headers, bytes(body), url)

    def _content(self, answer: _Answer, *, missing_ok: bool) -> Any:
        """The JSON of an answer; raises what its status means."""
        status, path = answer.status, short_path(answer.url)
        if status == 304 or (missing_ok and status in {404, 410}):
            return None
        if status >= 500 or status == 408:
            raise _PassingError(f"status {status}")
        if status != 200:
            known = {
                401: "GitHub does not accept the token: check TRIAGE_GITHUB_TOKEN",
                404: f"GitHub has no {path}, or the token may not see it",
                410: f"GitHub has no {path}, or the token may not see it",
            }
            raise RefusedError(known.get(status, f"GitHub refused {path} with status {status}"), status)
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise _PassingError("the answer is not JSON") from None
