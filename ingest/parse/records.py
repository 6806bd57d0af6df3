"""JSON objects in, records for the archive out. Pure: what cannot be used raises `InputError` with the field.

Two shapes are read: GitHub's REST API (`created_at`, `html_url`, `user`; source: docs.github.com/rest,
version 2022-11-28) and what `gh issue list --json` and `gh pr list --json` print (`createdAt`, `url`,
`author`; source: cli.github.com/manual). Fields may be missing but for the key: an issue's `number`
and `state`, a comment's `id` and its issue, a release's `tag_name`.
"""

from __future__ import annotations

import re
from typing import Any

from app.errors import InputError
from app.store.records import CommentRecord, IssueRecord, ReleaseRecord
from ingest.parse.fields import (
    Row,
    clean,
    count_of,
    flag_of,
    id_of,
    labels_of,
    login_of,
    part_of,
    text_of,
    time_of,
)

_PAGE = re.compile(r"https?://[\w.:-]{1,100}/[\w.-]{1,50}/[\w.-]{1,110}/(?:issues|pull)/[0-9]{1,18}")
_ISSUE_URL = re.compile(r"/issues/([0-9]{1,18})\Z")
_COMMENT_URL = re.compile(r"/(?:issues|pull)/([0-9]{1,18})#issuecomment-([0-9]{1,18})\Z")
_PAGE_URL = re.compile(
    r"https?://[^/]+/(?:(?:api/v3/)?repos/)?((?!repositories/)[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+)(?:/(?:issues|pull|pulls|releases)\b.*)?\Z",
    re.DOTALL,
)
_STATES = {"open": "open", "closed": "closed", "merged": "closed"}
_GH_PULL_KEYS = frozenset({"mergedAt", "isDraft", "headRefName", "mergeCommit"})
_SAME = ("number", "title", "body", "state", "labels", "comments")
_GH_NAMES = dict(zip(_SAME, _SAME, strict=True)) | {
    "url": "html_url",
    "author": "user",
    "authorAssociation": "author_association",
    "stateReason": "state_reason",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "closedAt": "closed_at",
    "mergedAt": "merged_at",
    "isDraft": "draft",
}
_CHANGES_HEADING = re.compile(r"^#+\s.*what['’]?s\s+changed", re.IGNORECASE)
_HEADING = re.compile(r"^#+\s")
_LIST_LINE = re.compile(r"^\s*[*+-]\s")
_NUMBERS_AT_END = re.compile(r"((?:#[0-9]{1,9}[\s,)\]]*(?:and\s+|&\s*)?)+)\.?\s*\Z")
_NUMBER = re.compile(r"#([0-9]{1,9})")


def issue_record(given: Any, repo: str) -> IssueRecord:
    """An issue or pull request, from a row of `/issues`, `/pulls`, `gh issue list` or `gh pr list`.

    Args:
        given: one JSON object.
        repo: `owner/name`, for the address where the row has none.

    Raises:
        InputError: names the field that is missing or odd.
    """
    raw = _cleaned(given)
    row = _as_rest(raw)
    number, pull = id_of(row, "number"), part_of(row, "pull_request")
    is_pull = row.get("pull_request") is not None or "merged_at" in row or "head" in row
    if row is not raw:
        is_pull = not _GH_PULL_KEYS.isdisjoint(raw) or f"/pull/{number}" in str(row.get("html_url"))
    state = _STATES.get((text_of(row, "state", wanted=True) or "").lower())
    if state is None:
        raise InputError("state is neither open nor closed")
    return IssueRecord(
        number=number,
        title=text_of(row, "title") or "",
        body=text_of(row, "body") or "",
        state=state,
        url=_page(text_of(row, "html_url"), f"{repo}/{'pull' if is_pull else 'issues'}/{number}"),
        is_pull_request=is_pull,
        state_reason=text_of(row, "state_reason", limit=20),
        author=login_of(row, "user"),
        author_association=text_of(row, "author_association", limit=30),
        labels=labels_of(row),
        comments=count_of(row, "comments"),
        reactions=count_of(part_of(row, "reactions"), "total_count"),
        created_at=time_of(row, "created_at"),
        updated_at=time_of(row, "updated_at"),
        closed_at=time_of(row, "closed_at"),
        raw=raw,
        merged_at=time_of(row, "merged_at") or time_of(pull, "merged_at"),
        merge_commit_sha=text_of(row, "merge_commit_sha", limit=64),
        is_draft=flag_of(row, "draft"),
    )


def _as_rest(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `gh` under the names of the REST API; the row itself if it is GitHub's own."""
    if "createdAt" not in row:
        return row
    named = {_GH_NAMES[name]: value for name, value in row.items() if name in _GH_NAMES}
    if isinstance(row.get("comments"), list):
        named["comments"] = len(row["comments"])
    named["merge_commit_sha"] = part_of(row, "mergeCommit").get("oid")
    named["state_reason"] = (text_of(row, "stateReason") or "").lower() or None
    groups = row.get("reactionGroups")
    groups = groups if isinstance(groups, list) else []
    users = [part_of(group, "users") for group in groups if isinstance(group, dict)]
    named["reactions"] = {"total_count": sum(count_of(user, "totalCount") for user in users)}
    return named


def _page(given: str | None, place: str) -> str:
    """The issue's page: as given if it is such an address and nothing else, since pages link to it."""
    return given if given and _PAGE.fullmatch(given[:300]) else f"https://github.com/{place}"


def comment_record(given: Any) -> CommentRecord:
    """A comment, from a row of `/issues/comments`; its issue is told by `issue_url`.

    Raises:
        InputError: names the field that is missing or odd.
    """
    row = _cleaned(given)
    return _comment(row, row, id_of(row, "id"), _issue_of_comment(row))


def _comment(row: Row, raw: dict[str, Any], key: int, issue_number: int) -> CommentRecord:
    created = time_of(row, "created_at")
    return CommentRecord(
        id=key,
        issue_number=issue_number,
        body=text_of(row, "body") or "",
        author=login_of(row, "user"),
        author_association=text_of(row, "author_association", limit=30),
        created_at=created,
        updated_at=time_of(row, "updated_at") or created,
        raw=raw,
    )


def _issue_of_comment(row: Row) -> int:
    if row.get("issue_number") is not None:
        return id_of(row, "issue_number")
    found = _ISSUE_URL.search(text_of(row, "issue_url") or "") or _COMMENT_URL.search(
        text_of(row, "html_url") or ""
    )
    if found is None:
        raise InputError("issue_url is missing or names no issue")
    return int(found[1])


def comments_inside(given: Any) -> list[CommentRecord]:
    """The comments that `gh issue list --json comments` puts inside an issue, but those without a key."""
    listed = given.get("comments") if isinstance(given, dict) and "createdAt" in given else None
    records = []
    for row in clean(listed) if isinstance(listed, list) else ():
        found = _COMMENT_URL.search(str(row.get("url"))) if isinstance(row, dict) else None
        if found is not None:
            named = {_GH_NAMES[name]: value for name, value in row.items() if name in _GH_NAMES}
            records.append(_comment(named, row, int(found[2]), int(found[1])))
    return records


def release_record(given: Any, repo: str) -> ReleaseRecord:
    """A release with the pull requests that its notes name, from a row of `/releases`.

    Raises:
        InputError: names the field that is missing or odd.
    """
    row = _cleaned(given)
    tag = text_of(row, "tag_name", limit=100, wanted=True)
    if not tag:
        raise InputError("tag_name is empty")
    notes = text_of(row, "body") or ""
    return ReleaseRecord(
        tag=tag,
        name=text_of(row, "name"),
        notes=notes,
        is_prerelease=flag_of(row, "prerelease"),
        published_at=time_of(row, "published_at") or time_of(row, "created_at"),
        pulls=pulls_in_notes(notes, repo),
        raw=row,
    )


def pulls_in_notes(notes: str, repo: str) -> tuple[int, ...]:
    """The pull requests that a release's notes name, in their order.

    Counted are `…/{repo}/pull/N` addresses and `#N` at the end of a list line, both in the list below
    "What's Changed" where there is such a heading, else in all list lines.
    """
    url = re.compile(rf"github\.com/{re.escape(repo)}/pull/([0-9]{{1,9}})(?![0-9])", re.IGNORECASE)
    found: dict[int, None] = {}
    for line in _change_lines(notes):
        # GitHub's own lists end in "by @x in #N"; lists by hand in "(#N)" or "(#N, #M)".
        ending = _NUMBERS_AT_END.search(line[-400:])
        numbers = [*url.findall(line), *(_NUMBER.findall(ending[1]) if ending else ())]
        found.update(dict.fromkeys(int(number) for number in numbers if int(number)))
    return tuple(found)


def _change_lines(notes: str) -> list[str]:
    """The list lines below "What's Changed", up to the next heading of its level; all of them without one."""
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
    """`owner/name` of the repository that a row says it is from, or None if it does not say."""
    if not isinstance(given, dict):
        return None
    for name in ("html_url", "url", "repository_url", "issue_url"):
        found = _PAGE_URL.match(value) if isinstance(value := given.get(name), str) else None
        if found:
            return found[1]
    return None


def _cleaned(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InputError("is no JSON object")
    cleaned: dict[str, Any] = clean(given)
    return cleaned
