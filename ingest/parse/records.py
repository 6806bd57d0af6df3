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
from ingest.parse.fields import GitHubComment, GitHubIssue, GitHubRelease, Row, clean, read_row

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
    """An issue or pull request, from a row of `/issues`, `/pulls`, `gh issue list` or `gh pr list`.

    Args:
        given: one JSON object.
        repo: `owner/name`, for the address where the row has none.

    Raises:
        InputError: names the field that is missing or odd.
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
    """The issue's page: as given if it is such an address and nothing else, since pages link to it."""
    return given if _PAGE.fullmatch(given[:300]) else f"https://github.com/{place}"


def comment_record(given: Any) -> CommentRecord:
    """A comment, from a row of `/issues/comments`; its issue is named by `issue_url`.

    Raises:
        InputError: names the field that is missing or odd.
    """
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
    """The comments that `gh issue list --json comments` puts inside an issue, but those without a key."""
    listed = given.get("comments") if isinstance(given, dict) and "createdAt" in given else None
    records = []
    for row in clean(listed) if isinstance(listed, list) else ():
        found = _COMMENT_URL.search(str(row.get("url"))) if isinstance(row, dict) else None
        if found is not None:
            records.append(_comment(row, id=int(found[2]), issue_number=int(found[1])))
    return records


def release_record(given: Any, repo: str) -> ReleaseRecord:
    """A release with the pull requests that its notes name, from a row of `/releases`.

    Raises:
        InputError: names the field that is missing or odd.
    """
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


def _cleaned(given: Any) -> Row:
    cleaned = clean(given)
    if not isinstance(cleaned, dict):
        raise InputError("is no JSON object")
    return cleaned
