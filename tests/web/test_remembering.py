"""Answers that are kept: for how long, and whose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from app.store.session import Store
from app.store.stamp import Stamp
from app.web.deps import Knowledge
from app.web.remembering import Memory

STORE = cast("Store", None)


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


def test_an_answer_is_not_kept_past_its_age() -> None:
    knowledge, asked = memory(Clock(), age_max_s=0.0)
    knowledge.overview(STORE, "a/b")
    knowledge.overview(STORE, "a/b")
    assert len(asked) == 2


def test_what_was_not_asked_for_longest_goes_first() -> None:
    knowledge, asked = memory(Clock(), entries_max=2)
    for repo in ("a/b", "c/d", "a/b", "e/f", "a/b", "c/d"):
        knowledge.overview(STORE, repo)
    assert [repo for repo, _ in asked] == ["a/b", "c/d", "e/f", "c/d"]
