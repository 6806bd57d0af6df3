"""What belongs to an issue: what people said, what is alike, and one pair by itself."""

from __future__ import annotations

import pytest

from app.errors import NotFoundError
from app.knowledge.issue.relations import likeness_of, related
from app.store.derived.links import save_links
from app.store.people import Verdict, save_judgement
from app.store.records import LinkRecord
from app.store.session import Store
from tests.knowledge.conftest import Keep
from tests.samples import EARLY, REPO, a_pull, a_traceback, an_issue

CRASH = a_traceback(
    "ValueError: the rotary table ends before position 40960",
    "vllm/model_executor/layers/rotary_embedding.py:forward_native",
    "vllm/model_executor/models/zebra.py:forward",
)
OTHER = a_traceback("KeyError: 'lm_head.weight_scale'", "vllm/model_executor/models/otter.py:load_weights")


def in_fence(log: str) -> str:
    return f"It ends like this:\n```\n{log}\n```\n"


def kinds(store: Store, number: int) -> dict[int, str]:
    return {item.number: item.kind for item in related(store, REPO, number)}


def test_an_issue_that_the_text_names_is_mentioned_from_both_ends(store: Store, keep: Keep) -> None:
    keep(an_issue(900, title="Zebra crashes", body="Looks like #901 to me."), an_issue(901))

    assert kinds(store, 900) == {901: "mentions"}
    assert kinds(store, 901) == {900: "mentions"}


def test_a_pull_request_that_closes_an_issue_fixes_it(store: Store, keep: Keep) -> None:
    keep(an_issue(900), a_pull(950, body="Fixes #900", merged_at=EARLY))

    assert kinds(store, 900) == {950: "fixed_by"}
    assert kinds(store, 950) == {900: "fixes"}


def test_an_issue_with_the_same_crash_is_similar_and_says_what_is_shared(store: Store, keep: Keep) -> None:
    strangers = [an_issue(number, body=in_fence(OTHER)) for number in range(910, 930)]
    keep(an_issue(900, body=in_fence(CRASH)), an_issue(901, body=in_fence(CRASH)), *strangers)
    found = next(item for item in related(store, REPO, 900) if item.number == 901)

    assert (found.number, found.kind, found.channel) == (901, "similar", "both")
    assert found.band in {"same", "likely"}
    assert "error messages" in found.reason


def test_a_likeness_that_is_no_more_than_related_is_not_told_beside_a_mention(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(an_issue(900, body=f"Looks like #901.\n{in_fence(CRASH)}"), an_issue(901, body=in_fence(CRASH)))
    assert {item.kind for item in related(store, REPO, 900)} == {"mentions", "similar"}

    monkeypatch.setattr("app.knowledge.issue.relations.band_of_score", lambda _score: "related")
    assert kinds(store, 900) == {901: "mentions"}


def test_a_pair_is_scored_whether_it_is_linked_or_not(store: Store, keep: Keep) -> None:
    keep(
        an_issue(900, body=in_fence(CRASH)),
        an_issue(901, body=in_fence(CRASH)),
        an_issue(902, body=in_fence(OTHER)),
    )
    (alike,) = likeness_of(store, REPO, 900, 901)
    (unlike,) = likeness_of(store, REPO, 900, 902)

    assert (alike.score or 0) > (unlike.score or 0)


def test_a_pair_is_scored_alike_from_both_ends_and_as_its_link_says(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=in_fence(CRASH)), an_issue(901, body=in_fence(CRASH)))
    (there,), (back,), (link,) = (
        likeness_of(store, REPO, 900, 901),
        likeness_of(store, REPO, 901, 900),
        related(store, REPO, 900),
    )

    assert (
        (there.score, there.band, there.reason)
        == (back.score, back.band, back.reason)
        == (link.score, link.band, link.reason)
    )


def test_what_is_said_of_a_pair_stands_before_its_score(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=f"Looks like #901.\n{in_fence(CRASH)}"), an_issue(901, body=in_fence(OTHER)))

    assert [item.kind for item in likeness_of(store, REPO, 900, 901)] == ["mentions", "similar"]


def test_an_issue_that_people_call_a_duplicate_is_one_from_both_ends(store: Store, keep: Keep) -> None:
    keep(an_issue(900, title="Zebra crashes", body="This is a duplicate of #901."), an_issue(901))

    assert kinds(store, 900)[901] == "duplicate"
    assert kinds(store, 901)[900] == "duplicate"


@pytest.mark.parametrize(
    "words", ["This is not a duplicate of #901.", "It isn't the same as #901.", "Different from #901."]
)
def test_an_issue_that_people_tell_apart_is_only_mentioned(store: Store, keep: Keep, words: str) -> None:
    keep(an_issue(900, body=words), an_issue(901, title="Something else", body=in_fence(OTHER)))

    assert kinds(store, 900)[901] == "mentions"


def test_a_reference_in_github_s_timeline_is_a_mention_from_both_ends(store: Store, keep: Keep) -> None:
    repo_id = keep(
        an_issue(900, title="One", body=in_fence(CRASH)), an_issue(901, title="Two", body=in_fence(OTHER))
    )
    link = LinkRecord(REPO, 901, "referenced_by", "GitHub's timeline")
    with store.unit_of_work() as session:
        save_links(session, repo_id, 900, [link], kind="referenced_by")

    assert kinds(store, 900) == {901: "mentions"}
    assert kinds(store, 901) == {900: "mentions"}


def test_a_target_that_is_not_stored_is_listed_by_its_number(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body="This started with #777."))
    (found,) = related(store, REPO, 900)

    assert (found.number, found.title, found.state) == (777, "", "unknown")


def test_an_issue_that_is_not_stored_has_no_relations(store: Store) -> None:
    with pytest.raises(NotFoundError):
        related(store, REPO, 5)


def judge(store: Store, one: int, two: int, verdict: Verdict) -> None:
    with store.unit_of_work() as session:
        save_judgement(session, 1, one, two, verdict)


def test_issues_judged_different_are_no_longer_called_alike(store: Store, keep: Keep) -> None:
    strangers = [an_issue(number, body=in_fence(OTHER)) for number in range(910, 930)]
    keep(an_issue(900, body=in_fence(CRASH)), an_issue(901, body=in_fence(CRASH)), *strangers)
    assert kinds(store, 900)[901] == "similar"

    judge(store, 901, 900, "different")

    assert 901 not in kinds(store, 900)
    assert 900 not in kinds(store, 901)
    assert [(item.band, item.score) for item in likeness_of(store, REPO, 900, 901)] == [("related", 0.0)]


def test_issues_judged_the_same_are_told_first_among_the_alike(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=in_fence(CRASH)), an_issue(901, body=in_fence(OTHER)))

    judge(store, 900, 901, "same")

    found = related(store, REPO, 901)
    assert [(item.number, item.band, item.score, item.reason) for item in found] == [
        (900, "same", 1.0, "judged the same failure")
    ]


def test_a_judgement_leaves_a_mention_alone(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=f"Looks like #901.\n{in_fence(CRASH)}"), an_issue(901, body=in_fence(CRASH)))

    judge(store, 900, 901, "different")

    assert kinds(store, 900) == {901: "mentions"}
