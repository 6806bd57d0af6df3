"""What is counted of clusters, straight from the archive."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.store.derived.cluster_queries import (
    ClusterFilter,
    cluster_sizes,
    clusters_holding,
    count_clusters,
    hardware_by_cluster,
    list_clusters,
    root_signatures,
    sum_thumbs,
)
from app.store.derived.clusters import count_reports, links_within, near_clusters
from app.store.github.issues import save_comments, save_issues
from app.store.people import save_vote, sum_votes
from app.store.session import Store
from tests.knowledge.made_clusters import ONE, SOLE, TWO, facts_of, group, link, put, report
from tests.samples import EARLY, REPO, a_comment

LATELY, BEFORE = EARLY + timedelta(days=80), EARLY + timedelta(days=40)


@pytest.fixture
def stored(store: Store) -> int:
    repo_id = put(
        store,
        (report(1, state="closed", closed_at=EARLY), facts_of(1, gpu="H100", signature=SOLE)),
        (report(2, created_at=BEFORE), facts_of(2, gpu="A100")),
        (report(3, created_at=LATELY), facts_of(3)),
        (report(4, created_at=LATELY), facts_of(4, signature=SOLE)),
    )
    group(store, repo_id, ONE, 1, 2, 3, signatures={1: TWO, 2: TWO})
    group(store, repo_id, TWO, 4, signatures={4: TWO})
    return repo_id


def test_reports_are_counted_by_time_and_state(store: Store, stored: int) -> None:
    with store.reading() as session:
        found = count_clusters(session, stored, [ONE, "s1-none"])

    assert set(found) == {ONE}
    one = found[ONE]
    assert (one.size, one.open_count, one.recent) == (3, 2, 1)
    assert (one.first_seen, one.last_seen) == (EARLY, LATELY)


def test_an_issue_that_is_gone_does_not_count(store: Store, stored: int) -> None:
    with store.unit_of_work() as session:
        save_issues(session, stored, [report(3, updated_at=LATELY, gone_at=LATELY, gone_reason="deleted")])
        count_reports(session, stored, [3])
    with store.reading() as session:
        assert count_clusters(session, stored, [ONE])[ONE].size == 2


def test_an_empty_base_has_no_clusters(store: Store) -> None:
    with store.reading() as session:
        assert list_clusters(session, 1, ClusterFilter()) == ([], 0)
        assert count_clusters(session, 1, [ONE]) == {}


def test_a_root_cause_s_signature_counts_before_any_other(store: Store, stored: int) -> None:
    with store.reading() as session:
        assert clusters_holding(session, stored, TWO) == [ONE, TWO]
        assert clusters_holding(session, stored, SOLE) == [ONE, TWO]
        assert clusters_holding(session, stored, "s1-none") == []
        assert root_signatures(session, stored, ONE) == {1: TWO, 2: TWO}


def test_sizes_and_hardware_are_told_by_issue(store: Store, stored: int) -> None:
    with store.reading() as session:
        assert cluster_sizes(session, stored, [1, 3, 4, 99]) == {1: 3, 3: 3, 4: 1}
        assert sorted(hardware_by_cluster(session, stored)) == [(ONE, 1, "H100"), (ONE, 2, "A100")]


def test_links_inside_and_out_of_a_cluster_are_told_apart(store: Store, stored: int) -> None:
    link(store, stored, 2, 1, "similar", score=0.9)
    link(store, stored, 3, 4, "similar", score=0.6)
    link(store, stored, 3, 1, "mentions")
    with store.reading() as session:
        assert [(tie.number, tie.target) for tie in links_within(session, stored, REPO, ONE)] == [(2, 1)]
        (near,) = near_clusters(session, stored, REPO, ONE, limit=5)
        assert (near.number, near.target, near.cluster_id, near.score) == (3, 4, TWO, 0.6)


def test_votes_and_thumbs_are_summed(store: Store, stored: int) -> None:
    with store.unit_of_work() as session:
        for visitor, value in (("a", 1), ("b", 1), ("c", -1)):
            save_vote(session, stored, 1, "works", visitor, value)
        save_vote(session, stored, 2, "common", "a", 1)
        found = {"reactions": {"+1": 4, "-1": 1}}
        save_comments(session, stored, [a_comment(7, 1, "x", raw=found), a_comment(8, 1, "y")])
    with store.reading() as session:
        assert sum_votes(session, stored, [1, 2], "works") == {1: 1}
        assert sum_thumbs(session, stored, [7, 8, 9]) == {7: 3}


def test_a_list_names_and_places_a_cluster_by_what_its_issues_say_now(store: Store, stored: int) -> None:
    closed = report(1, title="zebra", state="closed", closed_at=LATELY, updated_at=LATELY)
    with store.unit_of_work() as session:
        alive = ClusterFilter(alive=True)
        assert [one.id for one in list_clusters(session, stored, alive)[0]] == [ONE]
        save_issues(session, stored, [closed])
        count_reports(session, stored, [1])
        assert list_clusters(session, stored, alive) == ([], 0)  # closed after its newest report
        found, total = list_clusters(session, stored, ClusterFilter(words=("ZEBRA",)))
        assert ([one.title for one in found], total) == (["zebra"], 1)
        assert list_clusters(session, stored, ClusterFilter(), after=5) == ([], 2)
