"""Issues that are alike are linked as they are read, at both ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.knowledge.indexing import link as linking
from app.knowledge.indexing.batches import rederive_all
from app.knowledge.indexing.derive import derive_issues
from app.knowledge.indexing.link import SIMILAR_MAX
from app.store.derived.links import find_similar
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.records import LinkRecord
from app.store.schema import migrate
from app.store.session import Store, open_store
from tests.knowledge.conftest import Keep
from tests.samples import REPO, a_pull, a_traceback, an_issue

CRASH = a_traceback(
    "ValueError: the rotary table ends before position 40960",
    "vllm/model_executor/layers/rotary_embedding.py:forward_native",
    "vllm/model_executor/models/zebra.py:forward",
)
OTHER = a_traceback("KeyError: 'lm_head.weight_scale'", "vllm/model_executor/models/otter.py:load_weights")
TITLES = ("Zebra rotary table ends early", "Otter misses lm_head.weight_scale", "LoRA hangs on ROCm", "")
Links = dict[int, list[LinkRecord]]


def crash(number: int, title: str = "[Bug]: zebra ends before position 40960", log: str = CRASH) -> object:
    return an_issue(number, title=title, body=f"It ends like this:\n```\n{log}\n```\n")


def links(store: Store) -> Links:
    with store.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        return find_similar(session, repo_id, REPO, range(890, 1000))


def ends(found: Links) -> set[tuple[int, int, float | None]]:
    return {(number, link.target_number, link.score) for number, told in found.items() for link in told}


def test_two_reports_of_one_crash_are_linked_at_both_ends_alike(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901))
    found = links(store)

    assert [link.target_number for link in found[900]] == [901]
    assert found[901] == [
        LinkRecord(REPO, 900, "similar", link.reason, link.score, link.channel) for link in found[900]
    ]


def test_an_issue_that_comes_later_is_linked_with_those_that_are_stored(store: Store, keep: Keep) -> None:
    keep(crash(900))
    keep(crash(901))

    assert set(links(store)) == {900, 901}


def test_unlike_issues_are_not_linked(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901, "[Bug]: otter cannot load", OTHER))

    assert links(store) == {}


def test_a_text_that_changed_takes_its_links_along(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901))
    keep(an_issue(901, title="[Doc]: typo", body="A word is spelt wrong in the guide."))

    assert links(store) == {}


def test_a_pull_request_is_alike_to_nothing(store: Store, keep: Keep) -> None:
    keep(crash(900), a_pull(901, title="[Bug]: zebra ends before position 40960", body=CRASH))

    assert links(store) == {}


def test_an_issue_whose_rules_throw_loses_its_links(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo_id = keep(crash(900), crash(901))
    monkeypatch.setattr("app.knowledge.indexing.derive.read_issue", lambda _text: 1 / 0)
    with store.unit_of_work() as session:
        derive_issues(session, repo_id, REPO, [900])

    assert links(store) == {}


def test_no_issue_has_more_links_than_a_reader_can_use_and_all_stay_symmetric(
    store: Store, keep: Keep
) -> None:
    for start in (900, 910, 920, 930):
        keep(*(crash(number) for number in range(start, start + 10)))
    found = ends(links(store))

    assert max(len(told) for told in links(store).values()) <= SIMILAR_MAX
    assert {(two, one, score) for one, two, score in found} == found


def test_links_that_are_no_more_than_related_are_few(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "RELATED_MAX", 0)
    keep(crash(900), crash(901))

    assert all((link.score or 0) > 0.5 for told in links(store).values() for link in told)


def test_reading_everything_again_under_the_same_rules_changes_no_link(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901), crash(902, TITLES[1], OTHER))
    keep(crash(903), crash(904, TITLES[1], OTHER))
    before = links(store)
    rederive_all(store, REPO, lambda _progress: None)

    assert links(store) == before


@given(
    st.lists(st.tuples(st.sampled_from(TITLES), st.sampled_from([CRASH, OTHER, ""])), min_size=2, max_size=6),
    st.permutations(range(6)),
)
@settings(max_examples=15)
def test_links_are_symmetric_and_stay_in_whatever_order_issues_come(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]], order: list[int]
) -> None:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('links')}/base.db")
    migrate(store)
    for at in (at for at in order if at < len(texts)):
        with store.unit_of_work() as session:
            repo_id = add_repository(session, REPO)
            title, log = texts[at]
            save_issues(session, repo_id, [an_issue(900 + at, title=title, body=f"```\n{log}\n```")])
            derive_issues(session, repo_id, REPO, [900 + at])
    before = links(store)
    found = ends(before)
    assert {(two, one, score) for one, two, score in found} == found

    rederive_all(store, REPO, lambda _progress: None)
    assert links(store) == before
    store.close()
