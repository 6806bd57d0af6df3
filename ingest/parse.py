"""Parse GitHub's JSON into records for the store. Pure; invalid input raises `InputError` naming the field.

Numbers and lengths are checked against the store's limits, so that an invalid row is rejected here and does
not fail a whole batch there. Null is equivalent to a missing field.

Two shapes are read: GitHub's REST API (`created_at`, `html_url`, `user`; source: docs.github.com/rest,
version 2022-11-28) and what `gh issue list --json` and `gh pr list --json` print (`createdAt`, `url`,
`author`; source: cli.github.com/manual). Fields may be missing but for the key: an issue's `number`
and `state`, a comment's `id` and its issue, a release's `tag_name`.
"""

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
from app.store.records import CommentRecord, IssueRecord, ReleaseRecord

Row = dict[str, Any]
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace NUL and lone surrogates by U+FFFD; the length and thus offsets stay the same."""
    return _UNSTORABLE.sub("\ufffd", text)


def clean(value: Any) -> Any:
    """Clean all texts of a JSON value; NaN and infinity become null."""
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
    """Parse an RFC 3339 time with a zone.

    An empty text is None, as is Go's zero time (year 1), which `gh` prints for events that did not happen.

    Raises:
        ValueError: not such a time.
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
    """Return the number of reactions, from GitHub's total or `gh`'s groups of users."""
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
    """A JSON object with the field names of the REST API or of `gh`; other fields are ignored."""

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
    """Fields that issues and comments share."""

    body: str = ""
    user: Annotated[str | None, BeforeValidator(_login)] = Field(
        None, validation_alias=AliasChoices("user", "author")
    )
    author_association: Annotated[str, Field(max_length=30)] | None = None
    created_at: Moment = None
    updated_at: Moment = None


class MergedPull(GitHubRow):
    """The pull request object inside an issue's row."""

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
    """A comment; its issue's number is a field or part of one of its URLs."""

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
    """A webhook's payload; its rows are parsed by their own models."""

    action: str = ""
    repository: Row = {}
    issue: Row = {}
    pull_request: Row = {}
    comment: Row = {}
    release: Row = {}


Shape = TypeVar("Shape", bound=GitHubRow)


def read_row(shape: type[Shape], given: Any) -> Shape:
    """Validate a JSON object as a model.

    Raises:
        InputError: names the first missing or invalid field.
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


_PAGE = re.compile(r"https?://[\w.:-]{1,100}/[\w.-]{1,50}/[\w.-]{1,110}/(?:issues|pull)/[0-9]{1,18}")
_ISSUE_URL = re.compile(r"/issues/([0-9]{1,18})\Z")
_COMMENT_URL = re.compile(r"/(?:issues|pull)/([0-9]{1,18})#issuecomment-([0-9]{1,18})\Z")
_PAGE_URL = re.compile(
    r"https?://[^/]+/(?:(?:api/v3/)?repos/)?((?!repositories/)[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+)(?:/(?:issues|pull|pulls|releases)\b.*)?\Z",
    re.DOTALL,
)
_GH_PULL_KEYS = frozenset({"mergedAt", "isDraft", "headRefName", "mergeCommit"})
_CHANGES_HEADING = re.compile(r"^#+\s.*what['’]?s\s+changed", re.IGNORECASE)
_HEADING = re.compile(r"^#+\s")
_LIST_LINE = re.compile(r"^\s*[*+-]\s")
_NUMBERS_AT_END = re.compile(r"((?:#[0-9]{1,9}[\s,)\]]*(?:and\s+|&\s*)?)+)\.?\s*\Z")
_NUMBER = re.compile(r"#([0-9]{1,9})")


def issue_record(given: Any, repo: str) -> IssueRecord:
    """Parse an issue or pull request from a row of `/issues`, `/pulls`, `gh issue list` or `gh pr list`.

    Args:
        repo: `owner/name`, for the URL if the row has none.
    """
    raw = _cleaned(given)
    row = read_row(GitHubIssue, raw)
    is_pull = raw.get("pull_request") is not None or "merged_at" in raw or "head" in raw
    if "createdAt" in raw:
        is_pull = not _GH_PULL_KEYS.isdisjoint(raw) or f"/pull/{row.number}" in row.html_url
    return IssueRecord(
        **row.model_dump(exclude={"user", "html_url", "merged_at", "draft", "pull_request"}),
        author=row.user,
        url=_page(row.html_url, f"{repo}/{'pull' if is_pull else 'issues'}/{row.number}"),
        is_pull_request=is_pull,
        merged_at=row.merged_at or row.pull_request.merged_at,
        is_draft=row.draft,
        raw=raw,
    )


def _page(given: str, place: str) -> str:
    """Return the URL of the issue's page; a given one only if it is valid, since pages link to it."""
    return given if _PAGE.fullmatch(given[:300]) else f"https://github.com/{place}"


def comment_record(given: Any) -> CommentRecord:
    """Parse a comment from a row of `/issues/comments`; `issue_url` names its issue."""
    return _comment(_cleaned(given))


def _comment(raw: Row, **known: int) -> CommentRecord:
    row = read_row(GitHubComment, raw | known)
    named = _ISSUE_URL.search(row.issue_url) or _COMMENT_URL.search(row.html_url)
    if row.issue_number is None and named is None:
        raise InputError("issue_url is missing or names no issue")
    return CommentRecord(
        id=row.id,
        issue_number=row.issue_number or int(named[1] if named else 0),
        body=row.body,
        author=row.user,
        author_association=row.author_association,
        created_at=row.created_at,
        updated_at=row.updated_at or row.created_at,
        raw=raw,
    )


def comments_inside(given: Any) -> list[CommentRecord]:
    """Parse the comments inside an issue of `gh issue list --json comments`, except those without an id."""
    listed = given.get("comments") if isinstance(given, dict) and "createdAt" in given else None
    records = []
    for row in clean(listed) if isinstance(listed, list) else ():
        found = _COMMENT_URL.search(str(row.get("url"))) if isinstance(row, dict) else None
        if found is not None:
            records.append(_comment(row, id=int(found[2]), issue_number=int(found[1])))
    return records


def release_record(given: Any, repo: str) -> ReleaseRecord:
    """Parse a release with the pull requests mentioned in its notes, from a row of `/releases`."""
    raw = _cleaned(given)
    row = read_row(GitHubRelease, raw)
    return ReleaseRecord(
        tag=row.tag_name,
        name=row.name,
        notes=row.body,
        is_prerelease=row.prerelease,
        published_at=row.published_at or row.created_at,
        pulls=pulls_in_notes(row.body, repo),
        raw=raw,
    )


def pulls_in_notes(notes: str, repo: str) -> tuple[int, ...]:
    """Return the pull requests listed in a release's notes, in order.

    These are `…/{repo}/pull/N` URLs and `#N` at the end of a list line, in the list below "What's Changed"
    if there is such a heading, or else in all list lines.
    """
    url = re.compile(rf"github\.com/{re.escape(repo)}/pull/([0-9]{{1,9}})(?![0-9])", re.IGNORECASE)
    found: dict[int, None] = {}
    for line in _change_lines(notes):
        # Lines of generated notes end in "by @x in #N", of handwritten ones in "(#N)" or "(#N, #M)".
        ending = _NUMBERS_AT_END.search(line[-400:])
        numbers = [*url.findall(line), *(_NUMBER.findall(ending[1]) if ending else ())]
        found.update(dict.fromkeys(int(number) for number in numbers if int(number)))
    return tuple(found)


def _change_lines(notes: str) -> list[str]:
    """Return the list lines below "What's Changed", up to the next heading of its level, or else all."""
    lines = notes.splitlines()
    begin = next((i for i, line in enumerate(lines) if _CHANGES_HEADING.match(line)), None)
    if begin is not None:
        level = _level(lines[begin])
        lines = lines[begin + 1 :]
        lines = lines[: next((i for i, line in enumerate(lines) if 0 < _level(line) <= level), len(lines))]
    return [line for line in lines if _LIST_LINE.match(line)]


def _level(line: str) -> int:
    return len(line) - len(line.lstrip("#")) if _HEADING.match(line) else 0


def repo_named(given: Any) -> str | None:
    """Return `owner/name` of the repository in a row's URLs, or None."""
    if not isinstance(given, dict):
        return None
    for name in ("html_url", "url", "repository_url", "issue_url"):
        found = _PAGE_URL.match(value) if isinstance(value := given.get(name), str) else None
        if found:
            return found[1]
    return None


def _cleaned(given: Any) -> Row:
    cleaned = clean(given)
    if not isinstance(cleaned, dict):
        raise InputError("is no JSON object")
    return cleaned
