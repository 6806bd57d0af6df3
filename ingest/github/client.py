"""Client for GitHub's REST API: fetch a page or an object, with checks and retries.

Requests and the token go only to the configured origin: links and redirects are untrusted, and each is
checked first. Transient errors (a lost connection, 5xx, invalid JSON) are retried with jittered backoff; the
client waits for rate limits. Other errors become a `GitHubError` that never contains the token.
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
    """The API's origin; requests, links and redirects elsewhere raise `GitHubError`."""

    def __init__(self, api_url: str) -> None:
        self._base = httpx.URL(api_url.rstrip("/"))

    def __str__(self) -> str:
        return str(self._base.copy_with(path="", query=None)).rstrip("/")

    def address(self, target: str, params: Mapping[str, str | int] | None = None) -> httpx.URL:
        """Return the URL of an API path, or of an absolute link."""
        if not target.startswith("/"):
            return self.checked(httpx.URL(target))
        url = self._base.copy_with(path=self._base.path.rstrip("/") + target)
        return url.copy_merge_params(dict(params)) if params else url

    def has(self, url: str) -> bool:
        """True if a URL, such as one stored by an earlier run, is on this origin."""
        try:
            self.checked(httpx.URL(url))
        except (GitHubError, httpx.InvalidURL):
            return False
        return True

    def checked(self, url: httpx.URL) -> httpx.URL:
        """Return the URL if it is on this origin and contains no credentials."""
        if _place(url) != _place(self._base) or url.userinfo:
            raise GitHubError(f"GitHub's answer leads away from {self}; it was not followed")
        return url


def _place(url: httpx.URL) -> tuple[str, bytes, int | None]:
    # `host` would decode names such as `xn--a`, and raise if they are malformed.
    return url.scheme, url.raw_host, url.port or _DEFAULT_PORTS.get(url.scheme)


def short_path(url: httpx.URL) -> str:
    """Return a URL's path, shortened for messages."""
    return url.path[:120]


API_VERSION = "2022-11-28"
BODY_LIMIT_BYTES = 64 * 1024 * 1024
"""Ten times a page of 100 issues of 64 KiB, GitHub's maximum."""
ATTEMPTS = 9
"""With delays from 0.1 s doubled up to 20 s, this outlasts about half a minute of errors."""
FIRST_ATTEMPTS = 3
"""Attempts before GitHub's first response, to fail quickly on a machine without a network."""
MAX_WAIT_S = 3_700.0
"""Longest total wait for rate limits in one request; a primary window is an hour."""
TIMEOUT = httpx.Timeout(30.0, connect=8.0)
BODY_DEADLINE_S = 180.0
"""Longest time for a whole response, even if it trickles in."""
MAX_REDIRECTS = 4


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list.

    Attributes:
        items: GitHub's rows.
        next_url: an opaque URL on the API's origin, or None at the end.
        etag: of this response.
        not_modified: the list has not changed since the etag that was sent.
        asked_at: local time just before the request.
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


class _TransientGitHubError(Exception):
    """A transient error, worth a retry; its message contains no text from outside."""

    def __init__(self, what: str, *, unreachable: bool = False) -> None:
        super().__init__(what)
        self.unreachable = unreachable


def _fault_of(error: httpx.TransportError | httpx.DecodingError) -> str:
    """Describe a transport error; its own message may contain a URL with a password."""
    faults = {
        httpx.TimeoutException: "no answer in time",
        httpx.ProxyError: "the proxy refuses the connection",
        httpx.ConnectError: "no connection",
        httpx.DecodingError: "its answer cannot be unpacked",
    }
    return next((words for kind, words in faults.items() if isinstance(error, kind)), "the connection broke")


def quiet_retries() -> None:
    """Keep stamina from logging each retry; the final outcome is reported anyway."""
    stamina.instrumentation.set_on_retry_hooks(())


class GitHubClient:
    """Client that makes one request at a time. Use it in a `with` block.

    Args:
        api_url: the API's URL, `https://api.github.com` or an enterprise server's.
        token: sent to that origin only; None for anonymous requests.

    Attributes:
        origin: the API's origin.
        limits: state of the rate limit.
        on_wait: called before each wait for a rate limit.
        requests, not_modified: number of requests, and of 304 responses.
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
            follow_redirects=True,  # of renamed repositories
            max_redirects=MAX_REDIRECTS,
            event_hooks={"request": [self._check_request]},
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
        """Return one page of a list.

        Args:
            target: an API path, or the `next_url` of an earlier page.
            etag: of an earlier response to the same request; if unchanged, the page is `not_modified`.

        Raises:
            UnreachableError: no connection, after all retries.
            GitHubError: GitHub refused, a rate limit lasts too long, or the response is invalid.
        """
        asked_at = datetime.now(UTC)
        answer, content = self._get(target, params, etag)
        if answer.status == 304:
            self.not_modified += 1
            return Page((), None, etag, not_modified=True, asked_at=asked_at)
        if not isinstance(content, list):
            raise GitHubError(f"GitHub answered no list for {short_path(answer.url)}")
        return Page(tuple(content), self._next_link(answer), answer.headers.get("etag"), asked_at=asked_at)

    def get_object(
        self, target: str, params: Mapping[str, str | int] | None = None
    ) -> Mapping[str, Any] | None:
        """Return one object, or None if GitHub does not have it; raises as `get_page` does."""
        return self.find_object(target, params)[0]

    def find_object(
        self, target: str, params: Mapping[str, str | int] | None = None
    ) -> tuple[Mapping[str, Any] | None, str]:
        """Return one object, or None if GitHub does not have it, and the path after redirects."""
        answer, content = self._get(target, params, None, missing_ok=True)
        if answer.status == 200 and not isinstance(content, dict):
            raise GitHubError(f"GitHub answered no object for {short_path(answer.url)}")
        return content if answer.status == 200 else None, answer.url.path

    # ---- one request, with retries, waits and redirects

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

        def is_transient(error: Exception) -> bool:
            nonlocal tries
            tries += 1
            return isinstance(error, _TransientGitHubError) and (self._reached or tries < FIRST_ATTEMPTS)

        def ask() -> tuple[_Answer, Any]:
            answer = self._send_within_limits(url, etag)
            return answer, self._content(answer, missing_ok=missing_ok)

        again = stamina.retry(
            on=is_transient, attempts=ATTEMPTS, timeout=None, wait_initial=0.1, wait_max=20.0, wait_jitter=0.2
        )
        try:
            return again(ask)()
        except _TransientGitHubError as error:
            if error.unreachable:
                raise UnreachableError(f"GitHub could not be reached at {self.origin}: {error}") from None
            raise GitHubError(
                f"GitHub does not answer {short_path(url)} ({error}): try again later"
            ) from None

    def _send_within_limits(self, url: httpx.URL, etag: str | None) -> _Answer:
        waited = 0.0
        refused = 0
        while True:
            self.limits.check_reserve(self._clock.now())
            answer = self._send(url, etag)
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

    def _send(self, url: httpx.URL, etag: str | None) -> _Answer:
        headers = {"If-None-Match": etag} if etag else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
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
                        raise _TransientGitHubError("the answer took too long")
        except httpx.TooManyRedirects:
            raise GitHubError(f"GitHub redirects {short_path(url)} more than {MAX_REDIRECTS} times") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _TransientGitHubError(_fault_of(error), unreachable=True) from None
        except UnicodeError:  # httpx parses redirects itself, and raises on a malformed `xn--` name
            raise GitHubError(f"GitHub's redirect of {short_path(url)} leads away to no address") from None
        self.limits.update_from(response.headers, self._clock.now())
        return _Answer(response.status_code, response.headers, bytes(body), response.url)

    def _check_request(self, request: httpx.Request) -> None:
        """Hook of each request, of redirected ones too."""
        self.origin.checked(request.url)
        self.requests += 1

    def _next_link(self, answer: _Answer) -> str | None:
        """Return the URL of `Link: rel="next"`, or None at the end of a list."""
        try:
            target = httpx.Response(200, headers=answer.headers).links.get("next", {}).get("url")
            return str(self.origin.checked(answer.url.join(target))) if target else None
        except (httpx.InvalidURL, KeyError):
            raise GitHubError(f"GitHub's link after {short_path(answer.url)} cannot be read") from None

    def _content(self, answer: _Answer, *, missing_ok: bool) -> Any:
        """Return the JSON of a response, or raise the error for its status."""
        status, path = answer.status, short_path(answer.url)
        if status == 304 or (missing_ok and status in {404, 410}):
            return None
        if status >= 500 or status == 408:
            raise _TransientGitHubError(f"status {status}")
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
            raise _TransientGitHubError("the answer is not JSON") from None
