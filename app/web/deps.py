"""Endpoint dependencies: services (settings, store, answer cache) and admin authentication."""

import hmac
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, cast

from anyio import CapacityLimiter, fail_after, move_on_after
from anyio.to_thread import run_sync
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.config import Settings
from app.errors import StoreError, TriageError
from app.knowledge.cluster.view import view_cluster
from app.knowledge.diagnosis.diagnose import DiagnosedLog, Embed
from app.knowledge.diagnosis.shapes import ModelReading
from app.knowledge.freshness import Overview, overview
from app.knowledge.operations.log_reading import with_model_reading
from app.model_reader import LOG_DEADLINE_S, LOGS_AT_A_TIME
from app.store.session import Kind, Store

Asked = ParamSpec("Asked")
Found = TypeVar("Found")

CONTENT: tuple[Kind, ...] = ("content",)
ENTRIES_MAX = 256
"""Cached answers; some tens of megabytes if all are large."""
OVERVIEW_AGE_MAX_S = 60.0
COSTLY_FROM_S, COSTS_SERVED, SERVED_MAX_S = 0.1, 30, 60.0
"""An answer that took at least COSTLY_FROM_S to compute stays valid after a write for COSTS_SERVED times its
cost, at most SERVED_MAX_S: so under constant writes, a list takes at most 1/30 of one core."""
WRITERS = 4
WRITE_WAIT_S = 2.0
"""Number of writer threads, and how long a write waits for one of them and then for the database's lock."""


@dataclass(frozen=True, slots=True)
class _KeptAnswer:
    """A cached answer, its data version, when it was computed, and how long it outlives a write."""

    value: Any
    version: bytes
    made_at_s: float
    serves_until_s: float


class AnswerCache:
    """LRU cache of one process's answers over one store.

    A write invalidates answers. Expensive ones stay valid for a multiple of their cost: otherwise a sync or a
    reextract, which writes every few seconds, would cause every list to be computed again each time.

    Args:
        data_version: returns a token of the current data, see `Store.data_version`.
    """

    def __init__(
        self,
        data_version: Callable[..., bytes],
        *,
        entries_max: int = ENTRIES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._data_version = data_version
        self._entries_max = entries_max
        self._clock = clock
        self._guard = threading.Lock()
        self._kept: OrderedDict[Hashable, _KeptAnswer] = OrderedDict()

    def answer(
        self, question: partial[Found], *, kinds: tuple[Kind, ...] = CONTENT, max_age_s: float = math.inf
    ) -> Found:
        """Return `question()`, cached by its function and arguments, which must be hashable.

        Args:
            kinds: kinds of data that the answer depends on; answers depending on votes never outlive one.
        """
        key = question.func, question.args, tuple(sorted(question.keywords.items()))
        token, began_s = self._data_version(*kinds), self._clock()
        with self._guard:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        is_young = kept is not None and began_s - kept.made_at_s < max_age_s
        if kept is not None and is_young and (kept.version == token or began_s < kept.serves_until_s):
            return cast("Found", kept.value)
        found = question()
        made_at_s = self._clock()
        cost_s = made_at_s - began_s
        serves_s = min(cost_s * COSTS_SERVED, SERVED_MAX_S)
        is_costly = cost_s >= COSTLY_FROM_S and kinds == CONTENT
        with self._guard:
            self._kept[key] = _KeptAnswer(found, token, made_at_s, made_at_s + serves_s if is_costly else 0.0)
            self._kept.move_to_end(key)
            if len(self._kept) > self._entries_max:
                self._kept.popitem(last=False)
        return found


# `async` without awaiting anything: FastAPI runs each plain dependency in a thread, and a request would wait
# for a thread once for each of them.


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that every endpoint uses."""

    settings: Settings
    store: Store
    cache: AnswerCache | None = None
    count_verdict: Callable[[str], None] = lambda _verdict: None
    embed: Embed | None = None
    read_log: Callable[[DiagnosedLog], DiagnosedLog] | None = None
    log_readers: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(LOGS_AT_A_TIME))
    writers: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(WRITERS))

    @property
    def default_repo(self) -> str:
        """The repository of URLs that do not name one."""
        return self.settings.default_repo

    def cached(
        self,
        question: Callable[Concatenate[Store, Asked], Found],
        *args: Asked.args,
        **options: Asked.kwargs,
    ) -> Found:
        """Return `question(store, ...)`, cached until the data it depends on is written.

        The answer must depend only on the store and the arguments, which must be hashable.
        """
        if self.cache is None:
            return question(self.store, *args, **options)
        kinds = ("content", "votes") if question is view_cluster else CONTENT
        return self.cache.answer(partial(question, self.store, *args, **options), kinds=kinds)

    async def write(
        self, work: Callable[Concatenate[Store, Asked], Found], *args: Asked.args, **options: Asked.kwargs
    ) -> Found:
        """Run `work(store, ...)`, which writes, in one of a few writer threads, with a short timeout.

        Raises:
            StoreError: writing failed, or all writer threads stayed busy; and what `work` raises.
        """
        thread = CapacityLimiter(1)
        try:
            with fail_after(WRITE_WAIT_S):
                await self.writers.acquire_on_behalf_of(thread)
        except TimeoutError:
            raise StoreError("other writers wait already") from None
        try:
            return await run_sync(partial(work, self.store, *args, **options), limiter=thread)
        finally:
            self.writers.release_on_behalf_of(thread)

    async def read_by_model(self, found: DiagnosedLog) -> DiagnosedLog:
        """Return the diagnosis with the language model's additions; on timeout, without them.

        The model is called in separate threads, so that it does not delay other requests.
        """
        if self.read_log is None:
            return found
        with move_on_after(LOG_DEADLINE_S):
            return await run_sync(self.read_log, found, limiter=self.log_readers, abandon_on_cancel=True)
        return with_model_reading(found, ModelReading(fault="the model reader did not answer in time"))

    def overview(self, repo: str) -> Overview:
        """Return the repository's overview, cached for at most a minute, as it states the age of the data."""
        if self.cache is None:
            return overview(self.store, repo)
        return self.cache.answer(partial(overview, self.store, repo), max_age_s=OVERVIEW_AGE_MAX_S)


async def services(request: Request) -> Services:
    """Return the services created at server start."""
    return cast("Services", request.app.state.services)


ServicesDep = Annotated[Services, Depends(services)]
CHALLENGE = {"WWW-Authenticate": "Bearer"}


class AdminTokenError(TriageError):
    """The admin token is missing or wrong."""

    status = 401


class NoAdminError(TriageError):
    """The server has no admin token, so admin routes are disabled."""

    status = 403


_bearer = HTTPBearer(auto_error=False, scheme_name="admin", description="TRIAGE_ADMIN_TOKEN")


ADMIN_COOKIE = "triage_admin"
ADMIN_SECONDS = 12 * 3600


def admin_session(token: str, now: float) -> str:
    """Return the value of an admin session cookie: its expiry time, signed with the admin token."""
    end = str(int(now) + ADMIN_SECONDS)
    return f"{end}.{hmac.new(token.encode(), f'admin {end}'.encode(), 'sha256').hexdigest()}"


def is_admin_session(value: str | None, token: str, now: float) -> bool:
    """True if the cookie was signed with this token and has not expired; constant-time comparison."""
    end, _, _ = (value or "").partition(".")
    if not (end.isascii() and end.isdigit()) or len(end) > 12 or int(end) < now:
        return False
    wanted = admin_session(token, int(end) - ADMIN_SECONDS)
    return hmac.compare_digest((value or "").encode(errors="replace"), wanted.encode())


def is_admin_token(sent: str, token: str) -> bool:
    """True if this is the admin token; constant-time comparison."""
    return hmac.compare_digest(sent.encode("utf-8", errors="replace"), token.encode())


def admin_token(request: Request) -> str:
    """Return the configured admin token.

    Raises:
        NoAdminError: none is configured.
    """
    token = request.app.state.settings.admin_token
    if token is None:
        raise NoAdminError("Nobody may change this here: the operator sets TRIAGE_ADMIN_TOKEN.")
    return str(token.get_secret_value())


async def require_admin(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> None:
    """Require the admin token as bearer credentials; constant-time comparison.

    Raises:
        NoAdminError: none is configured.
        AdminTokenError: the token is missing or wrong.
    """
    token = admin_token(request)
    if credentials is None:
        raise AdminTokenError("Send the admin token: Authorization: Bearer TOKEN.")
    if not is_admin_token(credentials.credentials, token):
        raise AdminTokenError("This is not the admin token.")


async def has_admin(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> bool:
    """True if the request has the admin token as a header or the login form's session cookie.

    Raises:
        NoAdminError: no token is configured.
    """
    token = admin_token(request)
    if credentials is not None:
        return is_admin_token(credentials.credentials, token)
    return is_admin_session(request.cookies.get(ADMIN_COOKIE), token, time.time())


HasAdmin = Annotated[bool, Depends(has_admin)]
