"""Answers that are kept: for how long, and whose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import time_machine

from app.knowledge.cluster.families import families
from app.knowledge.cluster.view import clusters, view_cluster
from app.knowledge.digest.digest import archive, make_digest
from app.knowledge.digest.feed import feed_entries, stack_entries
from app.knowledge.digest.week import newest_whole_week
from app.knowledge.freshness import release_names, stored_repositories
from app.knowledge.home import home
from app.knowledge.iso_week import IsoWeek
from app.knowledge.issue.browse import IssueQuery, browse
from app.knowledge.stack.cases import affects_clusters, affects_issues
from app.knowledge.stack.stack import Stack
from app.knowledge.stack.upgrade import affecting, compare_versions
from app.knowledge.version.regressions import known_issues, regressions, release_heat
from app.store.session import Store, open_store
from app.web.deps import CONTENT, AnswerCache
from tests.served import starter_settings

STORE = cast("Store", None)
REPO = "vllm-project/vllm"
STACK = Stack(vllm="0.10.0", gpu="H100", model=None, args=None)
KEPT: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
    (home, (REPO,)),
    (browse, (REPO, IssueQuery())),
    (regressions, (REPO,)),
    (known_issues, (REPO, "0.10.0")),
    (clusters, (REPO,)),
    (view_cluster, (REPO,)),
    (make_digest, (REPO, IsoWeek(2025, 20))),
    (archive, (REPO,)),
    (newest_whole_week, (REPO,)),
    (feed_entries, (REPO,)),
    (release_names, (REPO,)),
    (stored_repositories, ()),
    (families, (REPO,)),
    (affecting, (REPO, STACK)),
    (affects_clusters, (REPO, STACK, ())),
    (affects_issues, (REPO, STACK, ())),
    (release_heat, (REPO,)),
    (stack_entries, (REPO, STACK)),
    (compare_versions, (REPO, "0.10.0", "0.11.0", STACK)),
)
"""Questions that the routes ask through `Services.cached`, with what they need beside the store."""


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of the starter cards, which nothing is written to."""
    opened = open_store(starter_settings(tmp_path_factory.mktemp("starter")).database_url)
    yield opened
    opened.close()


class Asked:
    """A cache, the data version of its store, and what was not answered from it."""

    def __init__(self, **options: Any) -> None:
        self.version, self.now_s, self.cost_s = 0, 0.0, 0.0
        self.asked: list[Any] = []
        self.cache = AnswerCache(
            lambda *_kinds: str(self.version).encode(), clock=lambda: self.now_s, **options
        )

    def __call__(self, repo: str, max_age_s: float = 60.0, kinds: Any = CONTENT, **named: Any) -> Any:
        question = partial(self._answer, STORE, repo, **named)
        return self.cache.answer(question, kinds=kinds, max_age_s=max_age_s)

    def _answer(self, _store: Store, repo: str, **named: Any) -> str:
        self.asked.append((repo, named))
        self.now_s += self.cost_s
        return f"{repo} {len(self.asked)}"


def test_the_same_question_is_answered_once_while_nothing_is_written() -> None:
    ask = Asked()
    assert ask("a/b") == ask("a/b")
    assert len(ask.asked) == 1


def test_a_commit_ends_every_answer() -> None:
    ask = Asked()
    ask("a/b")
    ask.version = 1
    ask("a/b")
    assert len(ask.asked) == 2


def test_other_arguments_are_another_question() -> None:
    ask = Asked()
    ask("a/b")
    ask("c/d")
    ask("a/b", limit=5)
    assert len(ask.asked) == 3


def test_an_answer_is_not_kept_past_its_age() -> None:
    ask = Asked()
    ask("a/b", max_age_s=10)
    ask.now_s = 11
    ask("a/b", max_age_s=10)
    assert len(ask.asked) == 2


@pytest.mark.parametrize(
    ("cost_s", "later_s", "kinds", "asked"),
    [
        (0.2, 5.9, CONTENT, 1),
        (0.2, 6.1, CONTENT, 2),
        (9.0, 59.9, CONTENT, 1),
        (9.0, 60.1, CONTENT, 2),
        (0.05, 0.01, CONTENT, 2),
        (0.2, 0.1, ("content", "votes"), 2),
    ],
)
def test_what_was_costly_to_make_outlives_a_write_for_a_while(
    cost_s: float, later_s: float, kinds: Any, asked: int
) -> None:
    ask = Asked()
    ask.cost_s = cost_s
    ask("a/b", kinds=kinds)
    ask.version, ask.now_s = 1, ask.now_s + later_s
    ask("a/b", kinds=kinds)
    assert len(ask.asked) == asked


def test_every_kept_answer_stands_in_this_modules_list() -> None:
    rooms = Path(__file__).parents[2] / "app" / "web"
    asked = {
        name for path in rooms.rglob("*.py") for name in re.findall(r"\.cached\(\s*(\w+)", path.read_text())
    }
    asked -= {"question"}  # passed through by `RepoContext.cached`
    assert asked == {question.__name__ for question, _ in KEPT} - {"home"} | {"load_home"}


@pytest.mark.parametrize(("question", "more"), KEPT, ids=lambda value: getattr(value, "__name__", ""))
def test_an_answer_that_is_kept_without_an_age_is_the_same_at_any_time(
    question: Callable[..., Any], more: tuple[Any, ...], starter: Store
) -> None:
    ask = partial(question, starter, *more)
    if question is view_cluster:
        ask = partial(ask, clusters(starter, REPO, limit=1).items[0].id)
    with time_machine.travel(datetime(2026, 1, 1, tzinfo=UTC), tick=False):
        then = ask()
    with time_machine.travel(datetime(2027, 6, 1, tzinfo=UTC), tick=False):
        assert ask() == then


def test_what_was_not_asked_for_longest_goes_first() -> None:
    ask = Asked(entries_max=2)
    for repo in ("a/b", "c/d", "a/b", "e/f", "a/b", "c/d"):
        ask(repo)
    assert [repo for repo, _ in ask.asked] == ["a/b", "c/d", "e/f", "c/d"]
