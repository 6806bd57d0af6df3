"""Clusters: found by today's id or a former one, members and aliases kept in step."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from app.store.derived.clusters import (
    ClusterRecord,
    FailureTraits,
    MemberRecord,
    cluster_of,
    find_aliases,
    find_clusters,
    find_members,
    first_members,
    members_of,
    remove_aliases,
    remove_members,
    replace_clusters,
    save_aliases,
    save_members,
)
from app.store.github.issues import add_repository, save_issues
from app.store.session import Store
from app.store.tables import CLUSTER_MEMBER
from tests.samples import REPO, an_issue

ZEBRA, OTTER = (
    ClusterRecord("s1-00000000000a", 3, "ValueError | the table ends"),
    ClusterRecord("s1-00000000000b", 4, "KeyError | 'a'"),
)


@pytest.fixture
def repo_id(store: Store) -> int:
    with store.unit_of_work() as session:
        key = add_repository(session, REPO)
        save_issues(session, key, [an_issue(number) for number in range(1, 7)])
        save_members(
            session, key, [a_member(1, ZEBRA.id), a_member(3, ZEBRA.id), a_member(4, OTTER.id, "s1-b")]
        )
        replace_clusters(session, key, [], [ZEBRA, OTTER])
        return key


def a_member(number: int, cluster_id: str, signature_id: str | None = "s1-a") -> MemberRecord:
    traits = FailureTraits(number, signature_id, frame="core.py:step", closed=True, repeats=(4,))
    return MemberRecord(traits, cluster_id)


def test_a_cluster_is_found_by_its_id_and_one_that_never_was_is_left_out(store: Store, repo_id: int) -> None:
    with store.reading() as session:
        assert find_clusters(session, repo_id, [ZEBRA.id, "s1-never"]) == {ZEBRA.id: ZEBRA}
        assert find_clusters(session, repo_id + 1, [ZEBRA.id]) == {}


def test_members_are_found_by_cluster_and_clusters_by_member(store: Store, repo_id: int) -> None:
    with store.reading() as session:
        assert members_of(session, repo_id, [OTTER.id, ZEBRA.id, "s1-never"]) == {
            ZEBRA.id: (1, 3),
            OTTER.id: (4,),
        }
        assert cluster_of(session, repo_id, [1, 2, 4]) == {1: ZEBRA.id, 4: OTTER.id}
        assert (members_of(session, repo_id, []), cluster_of(session, repo_id, [])) == ({}, {})


def test_traits_come_back_as_they_were_kept(store: Store, repo_id: int) -> None:
    with store.reading() as session:
        assert find_members(session, repo_id, [3, 2]) == {3: a_member(3, ZEBRA.id)}


def test_traits_of_an_older_version_are_ignored(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        older = update(CLUSTER_MEMBER).where(CLUSTER_MEMBER.c.number == 3)
        session.connection().execute(older.values(traits={"message": "it ends", "closed": True}))

    with store.reading() as session:
        kept = FailureTraits(3, "s1-a", closed=True)
        assert find_members(session, repo_id, [3]) == {3: MemberRecord(kept, ZEBRA.id)}


def test_a_member_that_is_saved_again_is_replaced(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_members(session, repo_id, [MemberRecord(FailureTraits(3), OTTER.id)])

    with store.reading() as session:
        assert find_members(session, repo_id, [3]) == {3: MemberRecord(FailureTraits(3), OTTER.id)}
        assert members_of(session, repo_id, [OTTER.id]) == {OTTER.id: (3, 4)}


def test_a_member_that_is_removed_is_in_no_cluster(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        remove_members(session, repo_id, {3, 99})

    with store.reading() as session:
        assert cluster_of(session, repo_id, [1, 3]) == {1: ZEBRA.id}


def test_the_first_member_with_a_signature_is_told(store: Store, repo_id: int) -> None:
    with store.reading() as session:
        assert first_members(session, repo_id, ["s1-a", "s1-b", "s1-c"]) == {"s1-a": 1, "s1-b": 4}


def test_a_former_id_finds_the_cluster_in_which_its_issue_is_now(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_aliases(session, repo_id, {"s1-old": 3, "s1-lost": 6})
    with store.reading() as session:
        assert find_clusters(session, repo_id, ["s1-old", "s1-lost", OTTER.id]) == {
            "s1-old": ZEBRA,
            OTTER.id: OTTER,
        }
        assert find_aliases(session, repo_id, [3, 4]) == {"s1-old": 3}

    with store.unit_of_work() as session:
        save_members(session, repo_id, [a_member(3, OTTER.id)])
    with store.reading() as session:
        assert find_clusters(session, repo_id, ["s1-old"]) == {"s1-old": OTTER}


def test_an_id_that_names_a_cluster_again_is_no_alias_any_more(store: Store, repo_id: int) -> None:
    with store.unit_of_work() as session:
        save_aliases(session, repo_id, {"s1-old": 3, "s1-older": 3})
        replace_clusters(session, repo_id, [ZEBRA.id], [ClusterRecord("s1-old", 1, "text")])
        remove_aliases(session, repo_id, ["s1-older"])

    with store.reading() as session:
        assert find_aliases(session, repo_id, [3]) == {}
        assert find_clusters(session, repo_id, [ZEBRA.id, "s1-old"]) == {
            "s1-old": ClusterRecord("s1-old", 1, "text")
        }


def test_more_keys_than_one_query_takes_are_asked_for_in_parts(store: Store, repo_id: int) -> None:
    with store.reading() as session:
        assert cluster_of(session, repo_id, range(1, 2_500)) == {1: ZEBRA.id, 3: ZEBRA.id, 4: OTTER.id}
