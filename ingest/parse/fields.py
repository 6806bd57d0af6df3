"""GitHub's JSON as far as it is read: each field checked, or refused by its name.

Numbers and lengths are checked against what the store holds, so that one odd row is refused here and does not
stop a whole batch there. Null stands for a missing field everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AliasChoices,
    AliasGenerator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from app.errors import InputError

Row = dict[str, Any]
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with NUL and lone surrogates as U+FFFD; of equal length, so offsets stay true."""
    return _UNSTORABLE.sub("\ufffd", text)


def clean(value: Any) -> Any:
    """A JSON value with all its texts cleaned; a number that is none (NaN, infinity) becomes null."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def moment_of(value: Any) -> datetime | None:
    """A time in RFC 3339 with its zone.

    `gh` prints Go's zero time (year 1) for what has not happened; that is None, as an empty text is.

    Raises:
        ValueError: it is no such time.
    """
    if value is None or value == "":
        return None
    try:
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("is no time") from None
    if datetime.fromisoformat(value).tzinfo is None:
        raise ValueError("is a time without a zone")
    return moment if moment.year > 1 else None


def _login(value: Any) -> Any:
    found = value.get("login") if isinstance(value, Mapping) else value
    if found is not None and not (isinstance(found, str) and len(found) <= 100):
        raise ValueError("names a login that is no text of at most 100 characters")
    return found or None


def _labels(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("is no list")
    names = [item.get("name") if isinstance(item, Mapping) else item for item in value]
    if not all(isinstance(name, str) for name in names):
        raise ValueError("holds something without a name")
    return tuple(dict.fromkeys(names))


def _reactions(value: Any) -> Any:
    """GitHub's total, or `gh`'s groups of users."""
    if isinstance(value, list):
        users = [group.get("users") for group in value if isinstance(group, Mapping)]
        return sum(user.get("totalCount") or 0 for user in users if isinstance(user, Mapping))
    return value.get("total_count") or 0 if isinstance(value, Mapping) else str(value)


def _state(value: Any) -> Any:
    lower = value.lower() if isinstance(value, str) else ""
    if lower not in {"open", "closed", "merged"}:
        raise ValueError("is neither open nor closed")
    return "open" if lower == "open" else "closed"


def _lower(value: Any) -> Any:
    return value.lower() or None if isinstance(value, str) else value


Key = Annotated[int, Field(ge=1, le=2**63 - 1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Moment = Annotated[datetime | None, BeforeValidator(moment_of)]


class GitHubRow(BaseModel):
    """One JSON object under the names of the REST API or of `gh`; what is not listed is left out."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(name, to_camel(name))),
    )

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: Any) -> Any:
        return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


class GitHubText(GitHubRow):
    """What issues and comments share."""

    body: str = ""
    user: Annotated[str | None, BeforeValidator(_login)] = Field(
        None, validation_alias=AliasChoices("user", "author")
    )
    author_association: Annotated[str, Field(max_length=30)] | None = None
    created_at: Moment = None
    updated_at: Moment = None


class MergedPull(GitHubRow):
    """What an issue's row holds of its pull request."""

    merged_at: Moment = None


class GitHubIssue(GitHubText):
    """An issue or pull request."""

    number: Key
    state: Annotated[str, BeforeValidator(_state)]
    title: str = ""
    html_url: str = Field("", validation_alias=AliasChoices("html_url", "url"))
    state_reason: Annotated[Annotated[str, Field(max_length=20)] | None, BeforeValidator(_lower)] = None
    labels: Annotated[tuple[str, ...], BeforeValidator(_labels)] = ()
    comments: Annotated[Count, BeforeValidator(lambda v: len(v) if isinstance(v, list) else v)] = 0
    reactions: Annotated[Count, BeforeValidator(_reactions)] = Field(
        0, validation_alias=AliasChoices("reactions", "reactionGroups")
    )
    closed_at: Moment = None
    merged_at: Moment = None
    merge_commit_sha: Annotated[str, Field(max_length=64)] | None = Field(
        None, validation_alias=AliasChoices("merge_commit_sha", AliasPath("mergeCommit", "oid"))
    )
    draft: bool = Field(False, validation_alias=AliasChoices("draft", "isDraft"))
    pull_request: MergedPull = MergedPull()


class GitHubComment(GitHubText):
    """A comment; one of the addresses names its issue where no field does."""

    id: Key
    issue_number: Key | None = None
    issue_url: str = ""
    html_url: str = ""


class GitHubRelease(GitHubRow):
    """A release; `body` is its notes."""

    tag_name: str = Field(min_length=1, max_length=100)
    name: str | None = None
    body: str = ""
    prerelease: bool = False
    published_at: Moment = None
    created_at: Moment = None


class GitHubDelivery(GitHubRow):
    """A webhook's payload; its rows are read by their own shapes."""

    action: str = ""
    repository: Row = {}
    issue: Row = {}
    pull_request: Row = {}
    comment: Row = {}
    release: Row = {}


Shape = TypeVar("Shape", bound=GitHubRow)


def read_row(shape: type[Shape], given: Any) -> Shape:
    """The fields of a JSON object.

    Raises:
        InputError: names the first field that is missing or odd.
    """
    if not isinstance(given, dict):
        raise InputError("is no JSON object")
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        words = " is missing" if fault["type"] == "missing" else f": {fault['msg']}"
        raise InputError(place + words.removeprefix(": Value error,")) from None
