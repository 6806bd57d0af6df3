"""Parameters shared by several routes, and the opaque cursors of lists."""

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, Field

from app.config import REPO_NAME
from app.errors import InputError
from app.extract.versions import check_version
from app.knowledge.freshness import stored_repositories
from app.knowledge.stack.stack import MAX_CHARS, Stack, parse_stack
from app.web.answers.schemas import NUMBER_MAX, none_if_blank
from app.web.body import nearest, plain_name
from app.web.deps import Services, ServicesDep

NAMES_LISTED = 40
"""Known names that a message lists: more than the parameters of any route."""
Number = Annotated[int, Path(ge=1, le=NUMBER_MAX)]
Version = Annotated[
    str | None,
    Query(max_length=100, description="vLLM version you run; sets `fix.for_you`"),
    AfterValidator(none_if_blank),
    AfterValidator(check_version),
]
RepoName = Annotated[str | None, Field(max_length=140, pattern=f"^{REPO_NAME.pattern}$")]
RepoQuery = Annotated[RepoName, Query(description="owner/name; default: the default repository")]


async def _chosen_repo(services: ServicesDep, repo: RepoQuery = None) -> str:
    return known_repo(services, repo)


def known_repo(services: Services, repo: str | None) -> str:
    """Return the requested repository, or the default one if None.

    Raises:
        RequestValidationError: it is neither configured nor stored.
    """
    known = tuple(dict.fromkeys((*services.settings.repo, *services.cached(stored_repositories))))
    if repo is None or repo in known:
        return repo or services.default_repo
    raise unknown_name("repo", "is not known here", repo, known)


def unknown_name(field: str, fault: str, given: str, known: Sequence[str]) -> RequestValidationError:
    """Return the error for an unknown name, with the nearest known one; the given name is not echoed."""
    near = nearest(given, known)
    more = f" and {len(known) - NAMES_LISTED} more" if len(known) > NAMES_LISTED else ""
    names = f"; there are {', '.join(known[:NAMES_LISTED])}{more}" if known else ""
    hint = f"; the nearest is {near}" if near else names
    return RequestValidationError([{"loc": ("query", field), "msg": fault + hint, "type": "unknown"}])


async def check_query(request: Request) -> None:
    """Reject query parameters unknown to a JSON route, as ignoring a filter would return too much.

    Raises:
        RequestValidationError: a parameter is unknown; the message suggests the nearest known one.
    """
    if not request.url.path.startswith("/api/v1"):
        return
    known = sorted(_query_names(request.scope["route"].dependant))
    for name in request.query_params:
        if name not in known:
            raise unknown_name(plain_name(name, "a parameter"), "is no parameter of this route", name, known)


def _query_names(dependant: Any) -> Iterator[str]:
    for field in dependant.query_params:
        shape = field.field_info.annotation
        is_model = isinstance(shape, type) and issubclass(shape, BaseModel)
        yield from shape.model_fields if is_model else (field.alias,)
    for inner in dependant.dependencies:
        yield from _query_names(inner)


ChosenRepo = Annotated[str, Depends(_chosen_repo)]
"""The repository in the query, or the default one."""
RepoPart = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]+$", max_length=100)]


async def _check_parts(owner: RepoPart, name: RepoPart) -> None:
    """Validate the two parts of a repository's name in a path, by their types."""


NAMED_REPO = [Depends(_check_parts)]
"""The dependencies of a route whose path contains `{owner}/{name}`."""


async def _repo_of_path(request: Request, services: ServicesDep) -> str:
    parts = request.path_params
    return f"{parts['owner']}/{parts['name']}" if "owner" in parts else services.default_repo


Repo = Annotated[str, Depends(_repo_of_path)]
"""The repository in the path, or the default one."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def issue_routes(
    router: APIRouter,
    tail: str = "",
    *,
    ids: tuple[str, str] | None = None,
    summary: str = "",
    methods: Sequence[str] = ("GET",),
    dependencies: Sequence[Any] = (),
    **options: Any,
) -> Callable[[Endpoint], Endpoint]:
    """Register one endpoint under an issue's short path and under the path that names the repository.

    Args:
        tail: path suffix after the issue's number.
        ids: operation ids of both paths for a JSON route; None for a page.
    """
    short, named = ("/api/v1/issues", "/api/v1/repos") if ids else ("/issues", "/r")
    default_id, any_id = ids or (None, None)

    def declare(endpoint: Endpoint) -> Endpoint:
        for path, operation_id, words, checks in (
            (f"{short}/{{number}}{tail}", default_id, summary, []),
            (f"{named}/{{owner}}/{{name}}/issues/{{number}}{tail}", any_id, summary + _ANY_REPO, NAMED_REPO),
        ):
            router.add_api_route(
                path,
                endpoint,
                methods=list(methods),
                operation_id=operation_id,
                summary=words,
                dependencies=[*checks, *dependencies],
                include_in_schema=ids is not None,
                **options,
            )
        return endpoint

    return declare


StackText = Annotated[
    str | None,
    Query(
        max_length=MAX_CHARS,
        description="what you run: version, GPU, model and arguments, parted by `~`; each item then says "
        "whether it affects you",
    ),
]


async def _stack(stack: StackText = None) -> Stack | None:
    return parse_stack(stack)


StackDep = Annotated[Stack | None, Depends(_stack)]
"""The stack in the query, or None.

Raises:
    InputError: it cannot be parsed.
"""

CursorText = Annotated[
    str | None, Query(max_length=200, description="`next_cursor` of the previous page, unchanged")
]

_ANY_REPO = " (any stored repository)"
_NUMBER_DIGITS = 18


_NOT_FILTERS = {"cursor", "facets", "limit", "max_chars", "stack"}


def narrowed(kind: str, filters: Mapping[str, str]) -> str:
    """Return the list's kind with a hash of its filters, so that a cursor is valid for these filters only."""
    given = sorted(
        (name, value.strip()) for name, value in filters.items() if name not in _NOT_FILTERS and value.strip()
    )
    return f"{kind}~{zlib.crc32(repr(given).encode()):08x}" if given else kind


def write_cursor(kind: str, place: int) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{place}".encode()).decode().rstrip("=")


def read_cursor(kind: str, cursor: str | None) -> int | None:
    """Return the position stored in a cursor of this kind; None without a cursor.

    Raises:
        InputError: the cursor is invalid or belongs to another list.
    """
    if not cursor:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    name, _, place = text.partition(":")
    if name != kind or not (place.isascii() and place.isdigit()) or len(place) > _NUMBER_DIGITS:
        raise InputError("cursor: it is not one of this list with these filters. Begin without it.")
    return int(place)
