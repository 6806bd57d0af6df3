"""Answers that are kept: for how long, and whose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import pytest
import time_machine

from app.knowledge.iso_week import IsoWeek
from app.knowledge.issue.facets import IssueQuery
from app.store.engine.data_version import Stamp
from app.store.session import Store, open_store
from app.web.cache import AGING, KEPT_ANSWERS, Memory
from app.web.deps import Knowledge
from tests.served import starter_settings

STORE = cast("Store", None)
REPO = "vllm-project/vllm"
MORE_ASKED: dict[str, tuple[Any, ...]] = {
    "browse": (IssueQuery(),),
    "known_issues": ("0.10.0",),
    "digest": (IsoWeek(2025, 20),),
}


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An archive of the starter cards, which nothing is written to."""
    opened = open_store(starter_settings(tmp_path_factory.mktemp("starter")).database_url)
    yield opened
    opened.close()


class Clock:
    """A stamp that a test moves on."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> str:
        return str(self.at)


def counted() -> tuple[Callable[..., Any], list[Any]]:
    asked: list[Any] = []

    def overview(_store: Store, repo: str, **named: Any) -> str:
        asked.append((repo, named))
        return f"{repo} {len(asked)}"

    return overview, asked


def memory(clock: Clock, **more: Any) -> tuple[Knowledge, list[Any]]:
    overview, asked = counted()
    told = Memory(cast("Stamp", clock), **more).remembering(replace(Knowledge(), overview=overview))
    return told, asked


def test_the_same_question_is_answered_once_while_nothing_is_written() -> None:
    knowledge, asked = memory(Clock())
    assert knowledge.overview(STORE, "a/b") == knowledge.overview(STORE, "a/b")
    assert len(asked) == 1


def test_a_commit_ends_every_answer() -> None:
    clock = Clock()
    knowledge, asked = memory(clock)
    knowledge.overview(STORE, "a/b")
    clock.at = 1
    knowledge.overview(STORE, "a/b")
    assert len(asked) == 2


def test_other_arguments_are_another_question() -> None:
    knowledge, asked = memory(Clock())
    knowledge.overview(STORE, "a/b")
    knowledge.overview(STORE, "c/d")
    cast("Any", knowledge.overview)(STORE, "a/b", limit=5)
    assert len(asked) == 3


def test_an_answer_that_tells_an_age_is_not_kept_past_its_own() -> None:
    knowledge, asked = memory(Clock(), age_max_s=0.0)
    knowledge.overview(STORE, "a/b")
    knowledge.overview(STORE, "a/b")
    assert len(asked) == 2


def test_an_answer_that_only_the_data_changes_is_kept_as_long_as_that_is_the_same() -> None:
    clock = Clock()
    browse, asked = counted()
    held = Memory(cast("Stamp", clock), age_max_s=0.0).remembering(replace(Knowledge(), browse=browse))
    assert cast("Any", held.browse)(STORE, "a/b") == cast("Any", held.browse)(STORE, "a/b")
    clock.at = 1
    cast("Any", held.browse)(STORE, "a/b")
    assert len(asked) == 2


@pytest.mark.parametrize("name", sorted(set(KEPT_ANSWERS) - AGING))
def test_an_answer_that_is_kept_without_an_age_is_the_same_at_any_time(name: str, starter: Store) -> None:
    ask = partial(getattr(Knowledge(), name), starter, REPO, *MORE_ASKED.get(name, ()))
    if name == "view_cluster":
        ask = partial(ask, Knowledge().clusters(starter, REPO, limit=1).items[0].id)
    with time_machine.travel(datetime(2026, 1, 1, tzinfo=UTC), tick=False):
        then = ask()
    with time_machine.travel(datetime(2027, 6, 1, tzinfo=UTC), tick=False):
        assert ask() == then


def test_what_was_not_asked_for_longest_goes_first() -> None:
    knowledge, asked = memory(Clock(), entries_max=2)
    for repo in ("a/b", "c/d", "a/b", "e/f", "a/b", "c/d"):
        knowledge.overview(STORE, repo)
    assert [repo for repo, _ in asked] == ["a/b", "c/d", "e/f", "c/d"]
