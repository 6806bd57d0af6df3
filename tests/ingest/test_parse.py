"""Shapes: GitHub's JSON and gh's JSON in, records out, or the field that is at fault."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InputError
from ingest.parse import (
    clean_text,
    comment_record,
    comments_inside,
    issue_record,
    pulls_in_notes,
    release_record,
    repo_named,
)

REPO = "acme/engine"

REST: dict[str, Any] = {
    "number": 12,
    "title": "Engine dies at start",
    "body": "Traceback follows",
    "state": "closed",
    "state_reason": "completed",
    "user": {"login": "ada", "id": 3},
    "author_association": "NONE",
    "labels": [{"name": "bug", "id": 1}, {"name": "rocm"}],
    "comments": 4,
    "reactions": {"total_count": 6, "+1": 6},
    "html_url": "https://github.com/acme/engine/issues/12",
    "created_at": "2025-03-01T10:00:00Z",
    "updated_at": "2025-03-02T10:00:00Z",
    "closed_at": "2025-03-02T09:00:00Z",
}

GH: dict[str, Any] = {
    "number": 12,
    "title": "Engine dies at start",
    "body": "Traceback follows",
    "state": "CLOSED",
    "stateReason": "NOT_PLANNED",
    "author": {"login": "ada", "is_bot": False},
    "labels": [{"name": "bug"}],
    "url": "https://github.com/acme/engine/issues/12",
    "createdAt": "2025-03-01T10:00:00Z",
    "updatedAt": "2025-03-02T10:00:00Z",
    "closedAt": "2025-03-02T09:00:00Z",
    "reactionGroups": [{"content": "THUMBS_UP", "users": {"totalCount": 2}}],
    "comments": [
        {
            "id": "IC_kw",
            "author": {"login": "bob"},
            "authorAssociation": "MEMBER",
            "body": "Try again",
            "createdAt": "2025-03-01T11:00:00Z",
            "url": "https://github.com/acme/engine/issues/12#issuecomment-901",
        }
    ],
}


def test_an_issue_as_the_rest_api_tells_it() -> None:
    record = issue_record(REST, REPO)
    assert (record.number, record.title, record.body) == (12, "Engine dies at start", "Traceback follows")
    assert (record.state, record.state_reason, record.author) == ("closed", "completed", "ada")
    assert (record.labels, record.comments, record.reactions) == (("bug", "rocm"), 4, 6)
    assert record.updated_at == datetime(2025, 3, 2, 10, tzinfo=UTC)
    assert not record.is_pull_request
    assert record.raw == REST


def test_a_pull_request_among_the_issues_tells_when_it_was_merged() -> None:
    row = {**REST, "draft": True, "pull_request": {"url": "…", "merged_at": "2025-03-02T08:00:00Z"}}
    record = issue_record(row, REPO)
    assert record.is_pull_request
    assert record.is_draft
    assert record.merged_at == datetime(2025, 3, 2, 8, tzinfo=UTC)


def test_a_pull_request_from_the_list_of_pull_requests() -> None:
    row = {**REST, "merged_at": None, "merge_commit_sha": "ab12", "head": {"ref": "x"}}
    record = issue_record(row, REPO)
    assert record.is_pull_request
    assert record.merged_at is None
    assert record.merge_commit_sha == "ab12"


def test_an_issue_as_gh_prints_it() -> None:
    record = issue_record(GH, REPO)
    assert (record.state, record.state_reason, record.author) == ("closed", "not_planned", "ada")
    assert (record.labels, record.comments, record.reactions) == (("bug",), 1, 2)
    assert record.closed_at == datetime(2025, 3, 2, 9, tzinfo=UTC)
    assert not record.is_pull_request
    (comment,) = comments_inside(GH)
    assert (comment.id, comment.issue_number, comment.author) == (901, 12, "bob")
    assert comments_inside(REST) == []


def test_a_pull_request_as_gh_prints_it() -> None:
    row = {
        **GH,
        "state": "MERGED",
        "url": "https://github.com/acme/engine/pull/12",
        "isDraft": False,
        "mergedAt": "2025-03-02T08:00:00Z",
        "mergeCommit": {"oid": "ab12"},
    }
    record = issue_record(row, REPO)
    assert record.is_pull_request
    assert (record.state, record.merge_commit_sha) == ("closed", "ab12")


def test_what_gh_prints_for_a_time_that_has_not_come_is_none() -> None:
    row = {**GH, "state": "OPEN", "stateReason": "", "closedAt": "0001-01-01T00:00:00Z"}
    record = issue_record(row, REPO)
    assert (record.closed_at, record.state_reason) == (None, None)


def test_fields_may_be_missing_but_for_the_key_and_the_state() -> None:
    record = issue_record({"number": 5, "state": "open"}, REPO)
    assert (record.title, record.body, record.author, record.labels) == ("", "", None, ())
    assert record.url == "https://github.com/acme/engine/issues/5"
    assert record.updated_at is None


@pytest.mark.parametrize(
    "row",
    [
        {**REST, "user": None, "body": None, "labels": None, "reactions": None, "closed_at": None},
        {**REST, "labels": ["bug", {"name": "rocm"}, "bug"]},
    ],
)
def test_null_stands_for_what_is_not_there_and_labels_may_be_texts(row: dict[str, Any]) -> None:
    record = issue_record(row, REPO)
    assert record.labels in {(), ("bug", "rocm")}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"number": None}, "number"),
        ({"number": "12"}, "number"),
        ({"number": True}, "number"),
        ({"number": 0}, "number"),
        ({"number": 2**63}, "number"),
        ({"number": 1.5}, "number"),
        ({"state": "ajar"}, "state"),
        ({"state": None}, "state"),
        ({"state": 7}, "state"),
        ({"title": 7}, "title"),
        ({"body": ["x"]}, "body"),
        ({"comments": -1}, "comments"),
        ({"comments": 2**40}, "comments"),
        ({"labels": "bug"}, "labels"),
        ({"labels": [{}]}, "labels"),
        ({"user": 9}, "user"),
        ({"user": {"login": "x" * 101}}, "user names a login"),
        ({"updated_at": "yesterday"}, "updated_at"),
        ({"updated_at": "2025-03-01T10:00:00"}, "updated_at"),
        ({"state_reason": "x" * 21}, "state_reason"),
        ({"reactions": 3}, "reactions"),
        ({"draft": "no"}, "draft"),
        ({"pull_request": True}, "pull_request"),
    ],
)
def test_an_odd_field_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}"):
        issue_record({**REST, **change}, REPO)


@pytest.mark.parametrize("given", [None, [], "issue", 7])
def test_what_is_no_object_is_refused(given: Any) -> None:
    for read in (lambda row: issue_record(row, REPO), comment_record, lambda row: release_record(row, REPO)):
        with pytest.raises(InputError):
            read(given)


def test_texts_no_database_takes_are_replaced_at_equal_length_everywhere() -> None:
    row = {
        **REST,
        "body": "a\x00b\ud83dc",
        "user": {"login": "a\x00"},
        "x_more": {"k\x00": ["\udc00", float("nan")]},
    }
    record = issue_record(row, REPO)
    assert record.body == "a\ufffdb\ufffdc"
    assert len(record.body) == len(row["body"])
    assert record.raw is not None
    assert record.raw["x_more"] == {"k\ufffd": ["\ufffd", None]}
    json.dumps(record.raw, ensure_ascii=False).encode()


@given(st.text(st.characters(), max_size=60))
def test_a_cleaned_text_has_the_length_it_had_and_can_be_encoded(text: str) -> None:
    cleaned = clean_text(text)
    assert len(cleaned) == len(text)
    assert "\x00" not in cleaned
    cleaned.encode()
    assert clean_text(cleaned) == cleaned


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(REST)), _JSON)
def test_any_value_in_any_field_is_taken_or_refused_in_one_line(field: str, value: Any) -> None:
    for row in ({**REST, field: value}, {**GH, field: value}):
        try:
            record = issue_record(row, REPO)
        except InputError:
            continue
        assert record.state in {"open", "closed"}
        json.dumps(record.raw, allow_nan=False, ensure_ascii=False).encode()


def test_a_comment_names_its_issue_by_address() -> None:
    row = {
        "id": 7,
        "issue_url": "https://api.github.com/repos/acme/engine/issues/12",
        "body": "yes",
        "user": {"login": "bob"},
        "created_at": "2025-03-01T10:00:00Z",
    }
    record = comment_record(row)
    assert (record.id, record.issue_number, record.body) == (7, 12, "yes")
    assert record.updated_at == datetime(2025, 3, 1, 10, tzinfo=UTC)
    row = {"id": 7, "html_url": "https://github.com/acme/engine/pull/12#issuecomment-7"}
    assert comment_record(row).issue_number == 12
    with pytest.raises(InputError, match="issue_url"):
        comment_record({"id": 7, "body": "yes"})


def test_a_release_names_the_pull_requests_of_its_list() -> None:
    notes = (
        "## Highlights\n* Faster start, see #99\n\n## What's Changed\n"
        "* Guard the cache by @ada in https://github.com/acme/engine/pull/41\n"
        "- Two kernels at once (#42, #43)\n* By hand #44 and #45.\n* Not this one: #46 is discussed\n"
        "* Elsewhere https://github.com/other/thing/pull/47\nProse #48\n* Again (#42)\n"
        "### Kernels\n* Deeper by @bob in #49\n"
        "## New Contributors\n* @ada made their first contribution in https://github.com/acme/engine/pull/50\n"
    )
    record = release_record({"tag_name": "v1.2.0", "body": notes, "prerelease": False}, REPO)
    assert record.pulls == (41, 42, 43, 44, 45, 49)
    assert (record.tag, record.is_prerelease, record.published_at) == ("v1.2.0", False, None)


def test_notes_without_that_heading_are_read_whole() -> None:
    assert pulls_in_notes("### Fixes\n* One (#7)\n* Two in https://github.com/Acme/Engine/pull/8", REPO) == (
        7,
        8,
    )
    assert pulls_in_notes("", REPO) == ()


@pytest.mark.parametrize("row", [{}, {"tag_name": ""}, {"tag_name": 5}, {"tag_name": "v" * 101}])
def test_a_release_needs_its_tag(row: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="tag_name"):
        release_record(row, REPO)


@pytest.mark.parametrize(
    ("row", "repo"),
    [
        ({"html_url": "https://github.com/a-b/c.d/issues/1#issuecomment-2"}, "a-b/c.d"),
        ({"url": "https://api.github.com/repos/a/b/issues/1"}, "a/b"),
        ({"repository_url": "https://ghe.test/api/v3/repos/a/b"}, "a/b"),
        ({"html_url": "https://github.com/a/b/releases/tag/v1"}, "a/b"),
        ({"url": "https://api.github.com/repositories/5/issues/1"}, None),
        ({"html_url": "nowhere"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_row_may_say_which_repository_it_is_from(row: Any, repo: str | None) -> None:
    assert repo_named(row) == repo


@pytest.mark.parametrize(
    "given", ["javascript:alert(1)", "https://evil.example/a b) [x](y", "https://github.com/o/r"]
)
def test_an_address_that_is_no_issue_page_is_made_from_repository_and_number(given: str) -> None:
    record = issue_record({**REST, "html_url": given}, "o/r")

    assert (
        record.url
        == f"https://github.com/o/r/{'pull' if record.is_pull_request else 'issues'}/{record.number}"
    )
