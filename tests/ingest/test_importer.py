"""The import: every shape of file, every way it can be broken."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors import InputError
from app.store.github.issues import find_comments, find_issue, find_repository, numbers_of
from app.store.github.releases import first_releases_of
from app.store.records import Progress
from app.store.session import Store
from ingest.importer import (
    CHUNK_BYTES,
    FAULTS_KEPT,
    HOPELESS_LINES,
    FileRow,
    ImportResult,
    import_paths,
    read_rows,
)

REPO = "acme/engine"


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"number": number, "title": f"Fault {number}", "state": "open", "body": "It fails.", **more}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in rows)


@pytest.fixture
def load(store: Store, tmp_path: Path, derive: Any) -> Any:
    def load_content(content: bytes, name: str = "given.jsonl", **more: Any) -> ImportResult:
        path = tmp_path / name
        path.write_bytes(content)
        return import_paths(store, [path], REPO, **more)

    return load_content


def stored(store: Store, repo: str = REPO) -> list[int]:
    with store.reading() as session:
        repo_id = find_repository(session, repo)
        return numbers_of(session, repo_id, limit=10_000) if repo_id else []


def issue(store: Store, number: int) -> Any:
    with store.reading() as session:
        return find_issue(session, find_repository(session, REPO) or 0, number)


PRETTY = json.dumps([row(1), row(2)], indent=2).encode()


@pytest.mark.parametrize(
    "content",
    [
        lines(row(1), row(2)),
        b"\n \n" + lines(row(1)) + b"\r\n" + lines(row(2)).rstrip(),
        b"\xef\xbb\xbf" + lines(row(1), row(2)),
        json.dumps([row(1), row(2)]).encode(),
        PRETTY,
        b"\xef\xbb\xbf \n" + PRETTY,
        json.dumps([row(1)]).encode() + json.dumps([row(2)]).encode(),
        json.dumps([row(1)]).encode() + b"\n[]\n" + json.dumps([row(2)]).encode() + b"\n",
        json.dumps([[row(1)], [row(2)]]).encode(),
        json.dumps(row(1), indent=1).encode() + b"\n" + json.dumps(row(2), indent=1).encode(),
        gzip.compress(lines(row(1), row(2)), mtime=0),
        gzip.compress(PRETTY, mtime=0),
        gzip.compress(lines(row(1)), mtime=0) + gzip.compress(lines(row(2)), mtime=0),
    ],
)
def test_every_shape_of_file_is_read(load: Any, store: Store, derive: Any, content: bytes) -> None:
    result = load(content)
    assert stored(store) == [1, 2]
    assert (result.stored, result.skipped) == (2, 0)
    assert sorted(derive.numbers) == [1, 2]


def test_rows_come_from_stdin_too(store: Store, derive: Any) -> None:
    result = import_paths(store, ["-"], REPO, stdin=io.BytesIO(lines(row(5))))
    assert result.stored == 1
    assert stored(store) == [5]
    with pytest.raises(InputError, match=r"^stdin: is not JSON"):
        import_paths(store, ["-"], REPO, stdin=io.BytesIO(b"hello"))


def test_a_line_that_cannot_be_used_is_told_with_its_place_and_skipped(
    load: Any, store: Store, tmp_path: Path
) -> None:
    content = (
        lines(row(1))
        + b"{broken\n\n"
        + lines(row(2, state="ajar"), [], 7, row(3))
        + b'{"title": "x"}\n\xff\xfe\n'
    )
    result = load(content)
    place = tmp_path / "given.jsonl"
    assert stored(store) == [1, 3]
    assert result.faults == [
        f"{place}:2: is no JSON",
        f"{place}:4: state is neither open nor closed",
        f"{place}:6: is no JSON object",
        f"{place}:8: is no issue, comment or release: number, issue_url and tag_name are missing",
        f"{place}:9: is no UTF-8 text",
    ]


def test_a_broken_first_line_does_not_hide_the_good_ones(load: Any, store: Store) -> None:
    result = load(b"oops\n" + lines(row(1)))
    assert stored(store) == [1]
    assert [fault.rsplit(":", 1)[0].rsplit(":", 1)[1] for fault in result.faults] == ["1"]


def test_an_array_tells_the_line_of_an_odd_row(load: Any, store: Store, tmp_path: Path) -> None:
    result = load(json.dumps([row(1), row(2, state=None), 5], indent=1).encode(), "a.json")
    assert stored(store) == [1]
    assert [fault.split(": ", 1)[1] for fault in result.faults] == ["state is missing", "is no JSON object"]
    assert [fault.split(":")[1] for fault in result.faults] == ["8", "14"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"number,title\n1,Fault\n", "is not JSON"),
        (b"\x00\x01\x02\xff" * 50, "is not JSON"),
        (b"<html>\n" * 5000, "is not JSON"),
        ("{'number': 1}\n".encode("utf-16"), "is not JSON"),
        (b"[" + lines(row(1)).strip() + b", {", "broken here|breaks off"),
        (b"[" + lines(row(1)).strip(), "breaks off"),
        (b"[}]", "broken here"),
        (b"]", "is not JSON"),
        (b"[]]", "is no JSON array"),
        (b"[" * 5000, "is no JSON array"),
        (b'["\xff"]', "UTF-8"),
        (gzip.compress(lines(*map(row, range(1, 50))), mtime=0)[:-20], "broken gzip"),
        (b"\x1f\x8b and no more", "broken gzip"),
    ],
)
def test_a_file_that_is_no_json_is_one_clear_error_and_leaves_nothing(
    load: Any, store: Store, content: bytes, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        load(content, "bad.json")
    assert "bad.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert stored(store) == []


def test_a_file_that_breaks_off_keeps_whole_batches_and_reads_them(
    load: Any, store: Store, derive: Any
) -> None:
    whole = json.dumps([row(n) for n in range(1, 451)]).encode()
    with pytest.raises(InputError, match="broken here"):
        load(whole[:-30], "cut.json")
    assert stored(store) == list(range(1, 401))
    assert sorted(derive.numbers) == list(range(1, 401))


def test_a_missing_file_a_folder_and_an_unknown_kind_are_refused_before_anything_is_stored(
    store: Store, tmp_path: Path, derive: Any
) -> None:
    good = tmp_path / "good.jsonl"
    good.write_bytes(lines(row(1)))
    for path, words in ((tmp_path / "none.json", "no such file"), (tmp_path, "folder"), (good / "x", "good")):
        with pytest.raises(InputError, match=words):
            import_paths(store, [good, path], REPO)
    with pytest.raises(InputError, match="cannot be imported: auto, issues"):
        import_paths(store, [good], REPO, "timeline")
    assert stored(store) == []


def test_a_later_row_replaces_an_earlier_one_unless_it_is_older(load: Any, store: Store) -> None:
    new, old = "2025-05-02T00:00:00Z", "2025-05-01T00:00:00Z"
    load(lines(row(1, updated_at=new, title="new"), row(1, updated_at=old, title="old")))
    assert issue(store, 1).title == "new"
    load(lines(row(1, updated_at=old, title="old")))
    assert issue(store, 1).title == "new"
    load(lines(row(1, updated_at=new, title="newer")))
    assert issue(store, 1).title == "newer"
    load(lines(row(1, title="without a time")))
    assert issue(store, 1).title == "without a time"


def test_importing_the_same_again_changes_and_reads_nothing(load: Any, derive: Any) -> None:
    content = lines(row(1, updated_at="2025-05-02T00:00:00Z"), row(2))
    load(content)
    derive.calls.clear()
    result = load(content)
    assert result.stored == 2
    assert derive.calls == []


def test_kinds_are_told_by_their_fields(load: Any, store: Store, derive: Any) -> None:
    comment = {"id": 71, "issue_url": f"https://api.github.com/repos/{REPO}/issues/1", "body": "Set the flag"}
    gh = {
        "number": 2,
        "title": "Two",
        "state": "OPEN",
        "createdAt": "2025-01-01T00:00:00Z",
        "comments": [{"url": f"https://github.com/{REPO}/issues/2#issuecomment-72", "body": "Same here"}],
    }
    release = {"tag_name": "v9", "body": "* One (#4)", "published_at": "2025-01-01T00:00:00Z"}
    event = {"event": "labeled", "id": 4, "created_at": "2025-01-01T00:00:00Z"}
    result = load(lines(row(1), comment, gh, release, row(3, pull_request={}), event))
    assert [fault.split(": ", 1)[1] for fault in result.faults] == ["is a timeline event, which is not kept"]
    assert stored(store) == [1, 2, 3]
    assert issue(store, 3).is_pull_request
    with store.reading() as session:
        found = find_comments(session, 1, [1, 2])
        assert {n: [c.id for c in found[n]] for n in found} == {1: [71], 2: [72]}
        assert first_releases_of(session, 1, [4]) == {4: "v9"}


def test_a_kind_that_is_named_is_believed(load: Any, store: Store) -> None:
    load(lines(row(8)), kind="pulls")
    assert issue(store, 8).is_pull_request
    assert issue(store, 8).url == f"https://github.com/{REPO}/pull/8"
    result = load(lines(row(9)), kind="comments")
    assert result.faults[0].endswith("id is missing")


def test_a_comment_has_its_issue_read_again(load: Any, derive: Any) -> None:
    load(lines(row(1), row(2)))
    derive.calls.clear()
    load(lines({"id": 5, "issue_number": 2, "body": "It works with the flag"}))
    assert derive.numbers == [2]


def test_rows_of_another_repository_go_there(load: Any, store: Store, derive: Any) -> None:
    other = row(1, html_url="https://github.com/other/thing/issues/1")
    spelled = row(2, html_url="https://github.com/Acme/Engine/issues/2")
    load(lines(other, spelled))
    assert stored(store) == [2]
    assert stored(store, "other/thing") == [1]
    assert sorted(derive.numbers) == [1, 2]


def test_fields_nobody_knows_stay_in_the_raw_row(load: Any, store: Store) -> None:
    load(lines(row(1, x_truncated=True, body="cut\x00")))
    assert issue(store, 1).raw["x_truncated"] is True
    assert issue(store, 1).body == "cut\ufffd"


def test_progress_names_the_file(load: Any, store: Store) -> None:
    found: list[Progress] = []
    load(lines(*map(row, range(1, 451))), report=found.append)
    assert [p.done for p in found if p.stage == "file"] == [200, 400, 450]
    assert found[0].note.endswith("given.jsonl")
    assert found[-1] == Progress("facts", 450, 450)


def test_all_faults_of_a_long_file_are_counted_and_the_first_kept(load: Any) -> None:
    result = load(lines(row(1)) + b"x\n" * 10_050)

    assert (result.skipped, len(result.faults)) == (10_050, FAULTS_KEPT)
    assert result.faults[0].endswith(":2: is no JSON")


def test_a_file_that_is_no_json_for_a_thousand_lines_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"11-26 INFO ready\n" * HOPELESS_LINES * 100)
    fault = r"^server.log: is not JSON in its first 1,000 lines; wanted are JSON lines or a JSON array"
    with path.open("rb") as source:
        with pytest.raises(InputError, match=fault):
            list(read_rows(source, path.name))

        assert source.tell() < path.stat().st_size / 10


def test_valid_lines_behind_some_hundred_others_are_stored(load: Any) -> None:
    result = load(b"x\n" * (HOPELESS_LINES - 1) + lines(row(1)))

    assert (result.stored, result.skipped) == (1, HOPELESS_LINES - 1)


def test_rows_across_the_edges_of_chunks_are_whole() -> None:
    rows = [row(n, body="\u00e9\U0001f600" * (CHUNK_BYTES // 700)) for n in range(400)]
    for content in (json.dumps(rows, ensure_ascii=False).encode(), lines(*rows)):
        found = list(read_rows(io.BytesIO(content), "x"))
        assert [item.value for item in found] == rows


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(_VALUES, max_size=6), st.sampled_from([None, 2]))
def test_an_array_gives_the_rows_that_were_put_in(rows: list[Any], indent: int | None) -> None:
    content = json.dumps(rows, indent=indent).encode()
    assert [item.value for item in read_rows(io.BytesIO(content), "x")] == rows


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:1a \n\\', max_size=40).map(str.encode))
def test_any_bytes_give_rows_or_one_line(content: bytes) -> None:
    try:
        found = list(read_rows(io.BytesIO(content), "x"))
    except InputError:
        return
    assert all(isinstance(item, FileRow) for item in found)
