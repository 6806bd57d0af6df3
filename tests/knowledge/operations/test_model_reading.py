from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from app.errors import ReaderError
from app.knowledge.freshness import reader_overview
from app.knowledge.indexing.batches import derive_changed
from app.knowledge.operations import model_reading
from app.knowledge.operations.model_reading import plan_reading, read_issues
from app.knowledge.operations.retention import forget_issue
from app.store.derived.readings import find_facts
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from tests.model_reader.replies import NOTHING, a_client, a_remedy, a_version, answered, content_of, models
from tests.samples import REPO, an_issue

BODY = "Issue {} is that the server stops with ValueError: no blocks.\n\nWith --enforce-eager everything is well for us."


@pytest.fixture
def store(sqlite_store: Store) -> Store:
    with sqlite_store.unit_of_work() as session:
        repo_id = add_repository(session, REPO)
        rows = [an_issue(n, title=f"Server {n} stops", body=BODY.format(n)) for n in range(1, 9)]
        save_issues(session, repo_id, rows)
    derive_changed(sqlite_store, REPO, range(1, 9))
    return sqlite_store


class Reader:
    """A server that names the one remedy, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        content = content_of(request)
        self.asked.append(content)
        return answered(good_reply(content))


def good_reply(content: str) -> dict[str, Any]:
    return {
        **NOTHING,
        "kind": {"value": "exception", "line": 2, "quote": "the server stops"},
        "remedies": [a_remedy(content, "--enforce-eager", "everything is well for us")],
        "versions": [a_version(content, "last_working", "9.9.9", "not there")],
    }


def actions(store: Store, *numbers: int) -> list[str]:
    with store.reading() as session:
        facts = find_facts(session, 1, list(numbers))
    return [item.action for one in facts.values() for item in one.workarounds if "eager" in item.action]


def by_model(store: Store) -> list[int]:
    """Issues of whose facts some come from the model."""
    with store.reading() as session:
        facts = find_facts(session, 1, list(range(1, 9)))
    return sorted(n for n, one in facts.items() if any(e.rule.startswith("model.") for e in one.evidence))


def test_replies_are_kept_and_merged_and_nothing_is_asked_twice(store: Store) -> None:
    reader = Reader()
    with a_client(reader) as client:
        assert plan_reading(store, REPO, client).issues == 8
        result = read_issues(store, REPO, client, parallel=3)
        assert (result.asked, result.kept, result.dropped) == (8, 16, 8)
        again = read_issues(store, REPO, client, parallel=3)
    assert (again.asked, len(reader.asked)) == (0, 8)
    assert any("Server 8 stops" in text for text in reader.asked[:3])  # of three at once, any may be first
    assert len(actions(store, *range(1, 9))) == 8
    with store.reading() as session:
        facts = find_facts(session, 1, [1])[1]
    assert all(BODY.format(1)[e.start : e.end] == e.quote for e in facts.evidence if e.source == "body")
    found = reader_overview(store, [REPO], 1_000).repositories[REPO]
    assert (found.outcomes, found.waiting, found.model) == ({"complete": 8}, 0, "reader (weights-1)")


def test_only_a_changed_text_is_asked_about_again(store: Store) -> None:
    reader = Reader()
    with a_client(reader) as client:
        read_issues(store, REPO, client)
        with store.unit_of_work() as session:
            save_issues(
                session,
                1,
                [
                    an_issue(3, title="Server 3 stops", body="Another text."),
                    an_issue(4, title="Server 4 stops", body=BODY.format(4), state="closed"),
                ],
            )
        derive_changed(store, REPO, [3, 4])
        result = read_issues(store, REPO, client)
    assert (result.asked, result.unchanged) == (1, 1)
    assert actions(store, 3) == []
    assert len(actions(store, 4)) == 1


def test_a_server_that_dies_loses_nothing_and_the_next_run_goes_on(store: Store) -> None:
    reader, count = Reader(), [0]

    def dying(request: httpx.Request) -> httpx.Response:
        count[0] += 1
        if count[0] > 3:
            raise httpx.ConnectError("refused")
        return reader(request)

    with a_client(dying, attempts=2) as client:
        result = read_issues(store, REPO, client)
    assert (result.asked, result.left) == (3, 5)
    assert "does not answer" in result.stopped
    with a_client(reader) as client:
        assert read_issues(store, REPO, client).asked == 5
    assert len(set(reader.asked)) == len(reader.asked) == 8


def test_a_server_that_never_answers_is_an_error(store: Store) -> None:
    with a_client(lambda _: httpx.Response(503), attempts=1) as client, pytest.raises(ReaderError):
        read_issues(store, REPO, client)


def test_one_issue_that_is_refused_stops_no_other_and_is_not_asked_again(store: Store) -> None:
    reader = Reader()

    def refusing(request: httpx.Request) -> httpx.Response:
        if "Server 5" in content_of(request):
            return httpx.Response(400, json={"error": {"message": "no"}})
        return reader(request)

    with a_client(refusing) as client:
        result = read_issues(store, REPO, client)
        assert result.outcomes == {"complete": 7, "refused": 1}
        assert read_issues(store, REPO, client).asked == 0


@pytest.mark.parametrize(
    ("reply", "cut", "outcome"),
    [
        ('{"kind": {"val', True, "cut"),
        ('{"kind": 1}', False, "invalid"),
        ("I cannot help.", False, "invalid"),
    ],
)
def test_a_reply_that_is_no_use_changes_nothing(store: Store, reply: str, cut: bool, outcome: str) -> None:
    before = actions(store, *range(1, 9))
    with a_client(lambda _: answered(reply, cut=cut)) as client:
        assert read_issues(store, REPO, client).outcomes == {outcome: 8}
    assert actions(store, *range(1, 9)) == before
    with store.reading() as session:
        assert session.connection().execute(text("SELECT min(reply) FROM model_reply")).scalar() == reply


def test_a_prompt_that_is_too_long_is_halved(store: Store) -> None:
    with store.unit_of_work() as session:
        save_issues(
            session,
            1,
            [
                an_issue(
                    9,
                    title="Server 9 stops",
                    body="\n".join(f"talk {n} goes on" for n in range(3_000)) + BODY.format(9),
                )
            ],
        )
    derive_changed(store, REPO, [9])
    reader = Reader()

    def short(request: httpx.Request) -> httpx.Response:
        if len(content_of(request)) > 20_000:
            return httpx.Response(400, json={"error": {"message": "maximum context length is 8192 tokens"}})
        return reader(request)

    with a_client(short) as client:
        assert read_issues(store, REPO, client, numbers=[9]).outcomes == {"complete": 1}
    assert len(actions(store, 9)) == 1


def test_the_day_s_tokens_are_not_exceeded(store: Store) -> None:
    reader = Reader()

    def costly(request: httpx.Request) -> httpx.Response:
        return answered(good_reply(content_of(request)), tokens=2_000)

    with a_client(costly) as client:
        result = read_issues(store, REPO, client, tokens_per_day=9_000)
        assert 0 < result.asked < 8
        assert result.tokens < 9_000 + 4_000
        assert "tomorrow" in result.stopped
        assert read_issues(store, REPO, client, tokens_per_day=9_000).asked == 0
    assert reader.asked == []


def test_a_text_that_is_taken_down_takes_its_replies_along(store: Store) -> None:
    with a_client(Reader()) as client:
        read_issues(store, REPO, client)
    forget_issue(store, REPO, 2, keep_out=False)
    with store.reading() as session:
        rows = session.connection().execute(text("SELECT DISTINCT number FROM model_reply")).scalars().all()
    assert sorted(rows) == [1, 3, 4, 5, 6, 7, 8]


def test_a_server_that_comes_back_with_another_model_ends_the_run(store: Store) -> None:
    reader, names = Reader(), iter(["weights-1", *["weights-2"] * 9])

    def restarting(request: httpx.Request) -> httpx.Response:
        if len(reader.asked) == 3:
            reader.asked.append("restarting")
            raise httpx.ConnectError("refused")
        return reader(request)

    with a_client(restarting, lambda: models(root=next(names))) as client:
        result = read_issues(store, REPO, client)
    assert "another model" in result.stopped
    assert result.asked == 3
    with store.reading() as session:
        kept = session.connection().execute(text("SELECT DISTINCT model FROM model_reply")).scalars().all()
    assert kept == ["reader (weights-1)"]


def test_replies_that_a_killed_run_left_are_merged_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_client(Reader()) as client:
        with monkeypatch.context() as killed:
            killed.setattr(model_reading, "derive_changed", lambda *_, **__: None)
            assert read_issues(store, REPO, client).asked == 8
        assert by_model(store) == []
        assert read_issues(store, REPO, client).asked == 0
    assert by_model(store) == [*range(1, 9)]


def test_another_prompt_or_model_is_asked_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader()
    with a_client(reader) as client:
        read_issues(store, REPO, client, limit=2)
    with a_client(
        reader, lambda: httpx.Response(200, json={"data": [{"id": "reader", "root": "weights-2"}]})
    ) as client:
        assert read_issues(store, REPO, client, numbers=[8]).asked == 1
    assert json.dumps(reader.asked).count("Server 8 stops") == 2
