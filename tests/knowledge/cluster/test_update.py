"""Failures are put into clusters as they are read, linked and judged; a rebuild gives the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from app.extract.log.signature import signature_id
from app.knowledge.cluster.judgements import judge, undo
from app.knowledge.cluster.update import withdraw
from app.knowledge.indexing.batches import rederive_all
from app.knowledge.indexing.derive import derive_issues
from app.store.derived.clusters import ClusterRecord, cluster_of, find_clusters, members_of
from app.store.github.issues import add_repository, find_repository, save_issues
from app.store.records import IssueRecord
from app.store.schema import migrate
from app.store.session import Store, open_store
from app.store.tables import metadata
from tests.knowledge.conftest import Keep
from tests.samples import LATE, REPO, a_comment, a_pull, a_traceback, an_issue

NUMBERS = range(900, 960)
KEYS = {"cluster": "id", "cluster_member": "number", "cluster_alias": "old_id"}
TABLES = tuple(KEYS)
CRASH = a_traceback(
    "ValueError: the rotary table ends before position 40960",
    "vllm/model_executor/layers/rotary_embedding.py:forward_native",
    "vllm/model_executor/models/zebra.py:forward",
)
OTHER = a_traceback("KeyError: 'lm_head.weight_scale'", "vllm/model_executor/models/otter.py:load_weights")
LATE_FAULT = a_traceback(
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "vllm/v1/worker/gpu_model_runner.py:execute_model",
)
ZEBRA, OTTER = "[Bug]: zebra ends before position 40960", "[Bug]: otter misses lm_head.weight_scale"


def crash(number: int, title: str = ZEBRA, log: str = CRASH, **told: Any) -> IssueRecord:
    return an_issue(number, title=title, body=f"It ends like this:\n```\n{log}\n```\n", **told)


def otter(number: int, **told: Any) -> IssueRecord:
    return crash(number, OTTER, OTHER, **told)


def groups(store: Store) -> set[tuple[int, ...]]:
    with store.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        ids = set(cluster_of(session, repo_id, NUMBERS).values())
        return set(members_of(session, repo_id, sorted(ids)).values())


def cluster(store: Store, number: int) -> ClusterRecord:
    with store.reading() as session:
        repo_id = find_repository(session, REPO) or 0
        key = cluster_of(session, repo_id, [number])[number]
        return find_clusters(session, repo_id, [key])[key]


def found(store: Store, key: str) -> ClusterRecord | None:
    with store.reading() as session:
        return find_clusters(session, find_repository(session, REPO) or 0, [key]).get(key)


def rows(store: Store, tables: Sequence[str] = TABLES) -> list[list[Any]]:
    found = []
    with store.engine.connect() as connection:
        for name in tables:
            table = metadata.tables[name]
            answer = connection.execute(select(table).order_by(table.c.repo_id, table.c[KEYS[name]]))
            found.append([tuple(row) for row in answer])
    return found


def rebuild(store: Store) -> None:
    """Forget all clusters and make them from what is stored."""
    with store.engine.begin() as connection:
        for name in TABLES:
            connection.execute(delete(metadata.tables[name]))
    rederive_all(store, REPO, lambda _progress: None)


def test_two_reports_of_one_crash_are_one_cluster_and_another_failure_is_alone(
    store: Store, keep: Keep
) -> None:
    keep(crash(900), otter(902))
    keep(crash(901))

    assert groups(store) == {(900, 901), (902,)}


def test_what_reports_no_failure_and_pull_requests_are_in_no_cluster(store: Store, keep: Keep) -> None:
    keep(
        crash(900),
        a_pull(901, title=ZEBRA, body=CRASH),
        an_issue(902, title="[Doc]: typo", body="A word is wrong."),
    )

    assert groups(store) == {(900,)}


def test_a_cluster_has_the_id_and_text_of_the_signature_of_its_canonical_issue(
    store: Store, keep: Keep
) -> None:
    keep(crash(900), crash(901, comments=12))
    found = cluster(store, 900)

    assert found.canonical == 901
    assert found.text.startswith("ValueError | the rotary table ends before position <n>")
    assert found.id == signature_id(found.text)


def test_of_two_clusters_with_one_signature_the_one_with_its_first_issue_has_its_id(
    store: Store, keep: Keep
) -> None:
    keep(crash(901), crash(902))
    judge(store, REPO, 901, 902, "different")
    assert cluster(store, 901).id == signature_id(cluster(store, 901).text) != cluster(store, 902).id

    keep(crash(900))
    judge(store, REPO, 900, 901, "different")
    judge(store, REPO, 900, 902, "different")
    assert cluster(store, 900).id == signature_id(cluster(store, 900).text)
    assert len({cluster(store, number).id for number in (900, 901, 902)}) == 3


def test_ids_of_clusters_that_are_joined_and_parted_still_lead_to_their_issues(
    store: Store, keep: Keep
) -> None:
    keep(crash(900), otter(901))
    one, two = cluster(store, 900).id, cluster(store, 901).id
    record, _ = judge(store, REPO, 900, 901, "same")
    assert groups(store) == {(900, 901)}
    assert found(store, one) == found(store, two) == cluster(store, 900)

    undo(store, (REPO,), record.id)
    assert groups(store) == {(900,), (901,)}
    assert (cluster(store, 900).id, cluster(store, 901).id) == (one, two)


def test_an_id_whose_issue_reports_a_failure_no_more_leads_to_the_rest_of_its_cluster(
    store: Store, keep: Keep
) -> None:
    keep(crash(900, comments=9), otter(901))
    judge(store, REPO, 900, 901, "same")
    key = cluster(store, 901).id
    keep(an_issue(900, title="[Doc]: typo", body="A word is wrong.", updated_at=LATE))

    assert groups(store) == {(901,)}
    assert found(store, key) == cluster(store, 901)


def test_an_issue_that_rules_cannot_read_leaves_its_cluster(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo_id = keep(crash(900), crash(901))
    monkeypatch.setattr("app.knowledge.indexing.derive.read_issue", lambda _text: 1 / 0)
    with store.unit_of_work() as session:
        derive_issues(session, repo_id, REPO, [900])

    assert groups(store) == {(901,)}


def test_a_duplicate_that_a_person_names_is_in_the_cluster_and_not_its_canonical_issue(
    store: Store, keep: Keep
) -> None:
    keep(crash(900), otter(901, state="closed", comments=30), a_comment(1, 901, "Duplicate of #900."))

    assert groups(store) == {(900, 901)}
    assert cluster(store, 900).canonical == 900


def test_a_duplicate_that_is_stored_before_its_original_joins_it_later(store: Store, keep: Keep) -> None:
    keep(otter(901), a_comment(1, 901, "Duplicate of #900."))
    assert groups(store) == {(901,)}

    keep(crash(900))
    assert groups(store) == {(900, 901)}


def test_an_issue_closed_as_a_duplicate_repeats_the_one_issue_it_names(store: Store, keep: Keep) -> None:
    keep(
        crash(900),
        otter(901, state="closed", state_reason="duplicate"),
        a_comment(1, 901, "See #900, please."),
    )

    assert groups(store) == {(900, 901)}


def test_a_late_fault_alone_joins_nothing(store: Store, keep: Keep) -> None:
    title = "[Bug]: CUDA error: an illegal memory access was encountered"
    keep(crash(900, title, LATE_FAULT), crash(901, f"{title} with Gemma", LATE_FAULT))

    assert groups(store) == {(900,), (901,)}


def test_judgements_hold_through_a_rebuild_and_until_they_are_undone(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901), otter(902))
    apart, _ = judge(store, REPO, 900, 901, "different")
    same, _ = judge(store, REPO, 901, 902, "same")
    assert groups(store) == {(900,), (901, 902)}

    rebuild(store)
    assert groups(store) == {(900,), (901, 902)}

    undo(store, (REPO,), apart.id)
    assert groups(store) == {(900, 901, 902)}
    undo(store, (REPO,), same.id)
    assert groups(store) == {(900, 901), (902,)}


def test_where_judgements_contradict_each_other_what_is_different_stays_apart_and_the_newest_of_the_others_holds(
    store: Store, keep: Keep
) -> None:
    keep(crash(900), crash(901), otter(902))
    judge(store, REPO, 900, 901, "different")
    judge(store, REPO, 901, 902, "same")
    judge(store, REPO, 900, 902, "same")

    assert groups(store) == {(900, 902), (901,)}


def test_reading_everything_again_changes_no_row(store: Store, keep: Keep) -> None:
    keep(crash(900), crash(901), otter(902), crash(903, comments=20))
    judge(store, REPO, 901, 902, "same")
    judge(store, REPO, 900, 901, "different")
    before = rows(store)
    rederive_all(store, REPO, lambda _progress: None)

    assert rows(store) == before


def test_what_is_gone_from_github_is_canonical_no_more(store: Store, keep: Keep) -> None:
    repo_id = keep(crash(900, comments=12), crash(901))
    assert cluster(store, 901).canonical == 900
    with store.unit_of_work() as session:
        assert withdraw(session, repo_id, 900, "deleted")
    assert cluster(store, 901).canonical == 901

    rebuild(store)
    assert cluster(store, 901).canonical == 901
    keep(crash(900, comments=12, updated_at=LATE))
    assert cluster(store, 901).canonical == 900


TEXTS = (
    (ZEBRA, CRASH),
    (OTTER, OTHER),
    ("[Bug]: zebra rotary table", CRASH),
    ("[Bug]: it crashes", LATE_FAULT),
    ("[Doc]: typo", ""),
    (ZEBRA, ""),
)
STEPS = st.one_of(
    st.tuples(
        st.just("keep"),
        st.lists(st.tuples(st.integers(900, 907), st.sampled_from(TEXTS)), min_size=1, max_size=5),
    ),
    st.tuples(
        st.just("judge"),
        st.tuples(st.integers(900, 907), st.integers(900, 907), st.sampled_from(["same", "different"])),
    ),
    st.tuples(st.just("undo"), st.integers(0, 3)),
)


def take(store: Store, step: tuple[str, Any], judged: list[int]) -> None:
    kind, found = step
    if kind == "keep":
        issues = dict(found)
        with store.unit_of_work() as session:
            repo_id = add_repository(session, REPO)
            save_issues(session, repo_id, [crash(number, *texts) for number, texts in issues.items()])
            derive_issues(session, repo_id, REPO, sorted(issues))
    elif kind == "judge":
        a, b, verdict = found
        with store.reading() as session:
            known = cluster_of(session, find_repository(session, REPO) or 0, [a, b])
        if a != b and len(known) == 2:
            judged.append(judge(store, REPO, a, b, verdict)[0].id)
    elif found < len(judged):
        undo(store, (REPO,), judged[found])


@contextmanager
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('clusters')}/base.db")
    migrate(store)
    yield store
    store.close()


@pytest.mark.long
@given(st.lists(STEPS, min_size=1, max_size=8))
@settings(max_examples=40)
def test_step_by_step_in_any_order_gives_the_clusters_of_a_rebuild(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    with scratch(tmp_path_factory) as store:
        take(store, ("keep", [(900, TEXTS[0])]), [])
        judged: list[int] = []
        for step in steps:
            take(store, step, judged)
        before = rows(store, TABLES[:2])
        rebuild(store)

        assert rows(store, TABLES[:2]) == before
