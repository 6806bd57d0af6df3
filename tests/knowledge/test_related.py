"""What belongs to an issue: what people said, what is alike, and one pair by itself."""

from __future__ import annotations

import pytest

from app.errors import NotFoundError
from app.knowledge.related import likeness_of, related
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import EARLY, REPO, a_pull, a_traceback, an_issue

CRASH = a_traceback(
    "ValueError: the rotary table ends before position 40960",
    "vllm/model_executor/layers/rotary_embedding.py:forward_native", "vllm/model_executor/models/zebra.py:forward",
)  # fmt: skip
OTHER = a_traceback("KeyError: 'lm_head.weight_scale'", "vllm/model_executor/models/otter.py:load_weights")


def in_fence(log: str) -> str:
    return f"It ends like this:\n```\n{log}\n```\n"


def kinds(store: Store, number: int) -> dict[int, str]:
    return {item.number: item.kind for item in related(store, REPO, number)}


def test_an_issue_that_the_text_names_is_mentioned_from_both_ends(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body="Looks like #901 to me."), an_issue(901))

    assert kinds(store, 900) == {901: "mentions"}
    assert kinds(store, 901) == {900: "mentions"}


def test_a_pull_request_that_closes_an_issue_fixes_it(store: Store, keep: Keep) -> None:
    keep(an_issue(900), a_pull(950, body="Fixes #900", merged_at=EARLY))

    assert kinds(store, 900) == {950: "fixed_by"}
    assert kinds(store, 950) == {900: "fixes"}


def test_an_issue_with_the_same_crash_is_similar_and_says_what_is_shared(store: Store, keep: Keep) -> None:
    strangers = [an_issue(number, body=in_fence(OTHER)) for number in range(910, 930)]
    keep(an_issue(900, body=in_fence(CRASH)), an_issue(901, body=in_fence(CRASH)), *strangers)
    (found,) = related(store, REPO, 900)

    assert (found.number, found.kind, found.channel) == (901, "similar", "both")
    assert found.band in {"same", "likely"}
    assert found.reason.startswith("shares ")


def test_a_pair_is_scored_whether_it_is_linked_or_not(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=in_fence(CRASH)), an_issue(901, body=in_fence(CRASH)), an_issue(902, body=in_fence(OTHER)))
    (alike,) = likeness_of(store, REPO, 900, 901)
    (unlike,) = likeness_of(store, REPO, 900, 902)

    assert (alike.score or 0) > (unlike.score or 0)


def test_a_target_that_is_not_stored_is_listed_by_its_number(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body="This started with #777."))
    (found,) = related(store, REPO, 900)

    assert (found.number, found.title, found.state) == (777, "", "unknown")


def test_an_issue_that_is_not_stored_has_no_relations(store: Store) -> None:
    with pytest.raises(NotFoundError):
        related(store, REPO, 5)
