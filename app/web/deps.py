"""What an endpoint depends on: the settings, the open store, kept answers, and the admin token's check."""

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
"""Kept answers; some tens of megabytes of the largest."""
OVERVIEW_AGE_MAX_S = 60.0
COSTLY_FROM_S, COSTS_SERVED, SERVED_MAX_S = 0.1, 30, 60.0
"""After a write an answer that took so long to make serves for so many times as long, up to a maximum:
however much is written, a list takes a thirtieth of one core's time."""
WRITERS = 4
WRITE_WAIT_S = 2.0
"""How long who writes waits for one of so many threads, and then for the lock that all processes share."""


@dataclass(frozen=True, slots=True)
class _KeptAnswer:
    """An answer, the data it is of, when it was made, and until when it serves after a write."""

    value: Any
    state: bytes
    made_at_s: float
    serves_until_s: float


class AnswerCache:
    """The answers of one process over one store; the one that was not asked for longest goes first.

    A write ends an answer, but one that took long to make serves on for a multiple of that time: else a sync
    or a reextract, which writes every few seconds, would have every list made anew each time.

    Args:
        data_version: gives a token of the data as it is, see `Store.data_version`.
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
        """What the question answers; its function and arguments, which must be hashable, are the key.

        Args:
            kinds: of the data that the answer depends on; what depends on votes never outlives one.
        """
        key = question.func, question.args, tuple(sorted(question.keywords.items()))
        state, began_s = self._data_version(*kinds), self._clock()
        with self._guard:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        is_young = kept is not None and began_s - kept.made_at_s < max_age_s
        if kept is not None and is_young and (kept.state == state or began_s < kept.serves_until_s):
            return cast("Found", kept.value)
        found = question()
        made_at_s = self._clock()
        cost_s = made_at_s - began_s
        serves_s = min(cost_s * COSTS_SERVED, SERVED_MAX_S)
        is_costly = cost_s >= COSTLY_FROM_S and kinds == CONTENT
        with self._guard:
            self._kept[key] = _KeptAnswer(found, state, made_at_s, made_at_s + serves_s if is_costly else 0.0)
            self._kept.move_to_end(key)
            if len(self._kept) > self._entries_max:
                self._kept.popitem(last=False)
        return found


# `async`, though nothing is waited for: FastAPI hands each plain function to a thread, and a request would
# wait for each before its work begins.


@dataclass(frozen=True, slots=True)
class Services:
    """What every endpoint works with."""

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
        """The repository that an address without one means."""
        return self.settings.default_repo

    def cached(
        self,
        question: Callable[Concatenate[Store, Asked], Found],
        *args: Asked.args,
        **options: Asked.kwargs,
    ) -> Found:
        """What `question` answers over the store, kept until what it depends on is written.

        The answer must depend on nothing but the arguments, which are hashable, and the store.
        """
        if self.cache is None:
            return question(self.store, *args, **options)
        kinds = ("content", "votes") if question is view_cluster else CONTENT
        return self.cache.answer(partial(question, self.store, *args, **options), kinds=kinds)

    async def write(
        self, work: Callable[Concatenate[Store, Asked], Found], *args: Asked.args, **options: Asked.kwargs
    ) -> Found:
        """What `work` answers; writers wait for each other in threads of their own, and not for long.

        Raises:
            StoreError: it cannot be written, or too many wait for that; and what `work` raises.
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
        """The diagnosis with what the operator's model adds; without it if that takes too long.

        It waits in threads of its own, so that answers to others do not.
        """
        if self.read_log is None:
            return found
        with move_on_after(LOG_DEADLINE_S):
            return await run_sync(self.read_log, found, limiter=self.log_readers, abandon_on_cancel=True)
        return with_model_reading(found, ModelReading(fault="the model reader did not answer in time"))

    def overview(self, repo: str) -> Overview:
        """The repository's overview; it states how old the data is, so it is kept for a minute at most."""
        if self.cache is None:
            return overview(self.store, repo)
        return self.cache.answer(partial(overview, self.store, repo), max_age_s=OVERVIEW_AGE_MAX_S)


async def services(request: Request) -> Services:
    """The services that were set up when the server started."""
    return cast("Services", request.app.state.services)


ServicesDep = Annotated[Services, Depends(services)]
CHALLENGE = {"WWW-Authenticate": "Bearer"}


class AdminTokenError(TriageError):
    """No admin token, or not the right one."""

    status = 401


class NoAdminError(TriageError):
    """No admin token is set, so nobody may."""

    status = 403


_bearer = HTTPBearer(auto_error=False, scheme_name="admin", description="TRIAGE_ADMIN_TOKEN")


ADMIN_COOKIE = "triage_admin"
ADMIN_SECONDS = 12 * 3600


def admin_session(token: str, now: float) -> str:
    """A cookie's value that its holder had the admin token: the time it ends, signed with the token."""
    end = str(int(now) + ADMIN_SECONDS)
    return f"{end}.{hmac.new(token.encode(), f'admin {end}'.encode(), 'sha256').hexdigest()}"


def is_admin_session(value: str | None, token: str, now: float) -> bool:
    """Whether a cookie was signed with this token and has not ended; compared in constant time."""
    end, _, _ = (value or "").partition(".")
    if not (end.isascii() and end.isdigit()) or len(end) > 12 or int(end) < now:
        return False
    wanted = admin_session(token, int(end) - ADMIN_SECONDS)
    return hmac.compare_digest((value or "").encode(errors="replace"), wanted.encode())


def is_admin_token(sent: str, token: str) -> bool:
    """Whether this is the admin token; compared in constant time."""
    return hmac.compare_digest(sent.encode("utf-8", errors="replace"), token.encode())


def admin_token(request: Request) -> str:
    """The operator's admin token.

    Raises:
        NoAdminError: none is set.
    """
    token = request.app.state.settings.admin_token
    if token is None:
        raise NoAdminError("Nobody may change this here: the operator sets TRIAGE_ADMIN_TOKEN.")
    return str(token.get_secret_value())


async def require_admin(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> None:
    """Let only the holder of the admin token pass; compared in constant time.

    Raises:
        NoAdminError: the operator has set none.
        AdminTokenError: none is sent, or another.
    """
    token = admin_token(request)
    if credentials is None:
        raise AdminTokenError("Send the admin token: Authorization: Bearer TOKEN.")
    if not is_admin_token(credentials.credentials, token):
        raise AdminTokenError("This is not the admin token.")


async def has_admin(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> bool:
    """Whether the visitor is the admin: by the header, or by the cookie of the login form.

    Raises:
        NoAdminError: the operator has set no token.
    """
    token = admin_token(request)
    if credentials is not None:
        return is_admin_token(credentials.credentials, token)
    return is_admin_session(request.cookies.get(ADMIN_COOKIE), token, time.time())


HasAdmin = Annotated[bool, Depends(has_admin)]
