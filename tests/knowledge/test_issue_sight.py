"""What a visitor sees of one issue."""

from __future__ import annotations

import pytest

from app.errors import NotFoundError
from app.knowledge.issue_sight import see_issue
from app.knowledge.issue_view import view_issue
from app.knowledge.votes import VoteCount, vote
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import REPO, an_issue

ANNA = "192.0.2.7"


def test_the_issue_is_the_one_that_programs_get(store: Store, keep: Keep) -> None:
    keep(an_issue(1, body="Another one: #2002."), an_issue(2002))
    seen = see_issue(store, REPO, 1, client=ANNA, vllm_version="0.9.1")

    assert seen.issue == view_issue(store, REPO, 1, vllm_version="0.9.1")
    assert [node.number for node in seen.graph.nodes] == [1, 2002]


def test_the_votes_are_those_of_all_with_the_visitor_s_own(store: Store, keep: Keep) -> None:
    keep(an_issue(1))
    vote(store, REPO, 1, "works", 1, client=ANNA)
    vote(store, REPO, 1, "works", -1, client="192.0.2.8")
    seen = see_issue(store, REPO, 1, client=ANNA)

    assert seen.votes.votes["works"] == seen.issue.votes["works"] == VoteCount(up=1, down=1)
    assert seen.votes.yours == {"works": 1}


@pytest.mark.parametrize(("repo", "number"), [(REPO, 77), ("nobody/nothing", 1)])
def test_what_is_not_stored_is_named(store: Store, keep: Keep, repo: str, number: int) -> None:
    keep(an_issue(1))
    with pytest.raises(NotFoundError, match=f"{repo}#{number} is not stored"):
        see_issue(store, repo, number, client=ANNA)
