"""Clusters as they are told: who belongs and why, what helps, the fix, since when, and whether it goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.errors import NotFoundError
from app.extract.facts import Fix, Regression
from app.knowledge.cluster.timeline import BUCKETS_MAX, timeline
from app.knowledge.cluster.view import clusters, current_id, view_cluster
from app.store.github.issues import save_comments
from app.store.github.releases import save_releases
from app.store.people import save_judgement
from app.store.session import Store
from app.store.tables import VOTE
from tests.knowledge.made_clusters import BODY, OLD, ONE, SOLE, TWO, facts_of, group, link, put, report, told
from tests.rows import over_rows
from tests.samples import EARLY, REPO, a_comment, a_pull, a_release

DAY = timedelta(days=1)


@pytest.fixture
def stored(store: Store) -> int:
    """Two clusters and a report alone: 1 (canonical), 2, 3 | 4 (canonical), 5 | 6."""
    repo_id = put(
        store,
        (
            report(1, comments=7, state="closed", closed_at=EARLY + DAY),
            facts_of(1, gpu="H100", version="0.9.0"),
        ),
        (
            report(2, created_at=EARLY + 2 * DAY),
            facts_of(2, gpu="H200", version="0.9.1", remedy="--enforce-eager"),
        ),
        (report(3, created_at=EARLY + 9 * DAY), facts_of(3, version="0.9.1")),
        (report(4), facts_of(4)),
        (report(5), facts_of(5)),
        (report(6, title="Something else"), facts_of(6)),
    )
    group(store, repo_id, ONE, 1, 2, 3, signatures={1: ONE, 2: ONE, 3: TWO}, old=OLD)
    group(store, repo_id, TWO, 4, 5, text="KeyError | 'rope'", signatures={4: TWO})
    group(store, repo_id, SOLE, 6, text="Something else")
    return repo_id


def ids(store: Store, **asked: object) -> list[str]:
    return [item.id for item in clusters(store, REPO, **asked).items]  # type: ignore[arg-type]


# ---- lists


@pytest.mark.usefixtures("stored")
def test_the_biggest_stands_first_with_what_is_counted_of_it(store: Store) -> None:
    page = clusters(store, REPO)
    first = page.items[0]

    assert [item.id for item in page.items] == [ONE, TWO, SOLE]
    assert page.total == 3
    assert (first.canonical, first.size, first.open_count, first.kind) == (1, 3, 2, "crash")
    assert (first.first_seen, first.last_seen) == (EARLY, EARLY + 9 * DAY)
    assert first.workaround_count == 1


@pytest.mark.usefixtures("stored")
def test_a_list_is_cut_into_parts(store: Store) -> None:
    assert ids(store, limit=2) + ids(store, after=2, limit=2) == [ONE, TWO, SOLE]
    assert clusters(store, REPO, after=9).total == 3


@pytest.mark.usefixtures("stored")
@over_rows(
    ("asked", "found"),
    [
        ({"min_size": 2}, [ONE, TWO]),
        ({"alive": True}, [ONE]),
        ({"q": "rope keyerror"}, [TWO]),
        ({"q": "ROOM"}, [ONE, TWO]),
        ({"q": "100%_"}, []),
        ({"q": "\x00 room\x00\ud800"}, [ONE, TWO]),
        ({"q": "#5"}, [TWO]),
        ({"q": "6"}, [SOLE]),
        ({"q": "77"}, []),
        ({"q": OLD}, [ONE]),
        ({"sort": "recent", "min_size": 2}, [ONE, TWO]),
        ({"sort": "growing", "min_size": 3}, [ONE]),
    ],
)
def test_a_list_is_narrowed(store: Store, asked: dict[str, object], found: list[str]) -> None:
    assert ids(store, **asked) == found


def test_a_repository_that_is_not_stored_has_no_clusters(store: Store) -> None:
    assert clusters(store, "other/project").items == ()


# ---- ids


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(("asked", "current"), [(ONE, ONE), (OLD, ONE), (TWO, TWO)])
def test_an_id_leads_to_the_cluster_of_today(store: Store, asked: str, current: str) -> None:
    assert current_id(store, REPO, asked) == current


def test_a_report_s_signature_leads_to_the_biggest_cluster_that_holds_it(store: Store) -> None:
    held = "s1-dddddddddddd"
    repo_id = put(store, *((report(n), facts_of(n, signature=held)) for n in (1, 2, 3)))
    group(store, repo_id, ONE, 1, signatures={1: held})
    group(store, repo_id, TWO, 2, 3, signatures={2: held})

    assert current_id(store, REPO, held) == TWO
    assert view_cluster(store, REPO, TWO, via=held).also == (ONE,)


@pytest.mark.usefixtures("stored")
@over_rows("asked", ["s1-ffffffffffff", "", "x" * 90, "s1-\x00"])
def test_an_unknown_id_is_not_found(store: Store, asked: str) -> None:
    with pytest.raises(NotFoundError, match="no signature"):
        current_id(store, REPO, asked)
    with pytest.raises(NotFoundError):
        view_cluster(store, "other/project", ONE)


# ---- members


def test_each_member_says_why_it_belongs(store: Store) -> None:
    repo_id = put(store, *((report(n), facts_of(n)) for n in range(1, 8)))
    group(store, repo_id, ONE, 1, 2, 3, 4, 5, 6, 7, signatures={1: ONE, 2: ONE, 6: TWO, 7: TWO})
    link(store, repo_id, 3, 1, "duplicate")
    link(store, repo_id, 4, 2, "similar", score=0.93, reason="titles alike")
    with store.unit_of_work() as session:
        save_judgement(session, repo_id, 5, 1, "same")

    why = {member.number: member.why for member in view_cluster(store, REPO, ONE).members}

    assert list(why) == [1, 7, 6, 5, 4, 3, 2]
    assert why[2] == "The same error signature as #1."
    assert why[3] == "It is reported as a duplicate of #1."
    assert why[4] == "Alike with #2: titles alike."
    assert why[5] == "A person judged it the same failure as #1."
    assert why[6] == "The same error signature as #7."


@pytest.mark.usefixtures("stored")
def test_the_canonical_one_is_said_to_have_the_evidence_it_has(store: Store) -> None:
    detail = view_cluster(store, REPO, ONE)

    assert detail.members[0].role == "canonical"
    assert detail.canonical_reason == (
        "Of the 3 reports it has the most evidence: 7 comments, the vLLM version, the hardware."
    )
    assert view_cluster(store, REPO, SOLE).canonical_reason == "It is the only report."


def test_a_like_cluster_that_was_not_merged_is_named_with_its_likest_pair(store: Store, stored: int) -> None:
    link(store, stored, 2, 5, "similar", score=0.7, reason="a line that many failures share")
    link(store, stored, 3, 4, "similar", score=0.6)
    with store.unit_of_work() as session:
        save_judgement(session, stored, 4, 1, "different")

    (near,) = view_cluster(store, REPO, ONE).not_merged

    assert (near.id, near.size, near.pair, near.score) == (TWO, 2, (2, 5), 0.7)
    assert near.reason == "a line that many failures share"


def test_a_person_s_word_is_the_reason_why_two_stand_apart(store: Store, stored: int) -> None:
    link(store, stored, 2, 5, "similar", score=0.7)
    with store.unit_of_work() as session:
        save_judgement(session, stored, 5, 2, "different")

    assert view_cluster(store, REPO, ONE).not_merged[0].reason == "a person judged them different failures"


# ---- what is counted


@pytest.mark.usefixtures("stored")
def test_versions_hardware_and_families_are_counted(store: Store) -> None:
    detail = view_cluster(store, REPO, ONE)

    assert [(item.value, item.reports) for item in detail.versions] == [("0.9.0", 1), ("0.9.1", 2)]
    (hopper,) = detail.gpus
    assert (hopper.architecture, hopper.reports, hopper.of, hopper.by_chance) == ("Hopper", 2, 2, "too_few")


def test_backends_that_differ_in_case_only_are_one(store: Store) -> None:
    spelled = {1: "awq", 2: "AWQ", 3: "AWQ"}
    repo_id = put(
        store,
        *(
            (report(n), facts_of(n, backends={"quantization": (value,)}, models=("org/Qwen3-8B",)))
            for n, value in spelled.items()
        ),
    )
    group(store, repo_id, ONE, 1, 2, 3)
    detail = view_cluster(store, REPO, ONE)

    assert [(item.key, item.value, item.reports) for item in detail.backends] == [("quantization", "AWQ", 3)]
    assert [(item.value, item.reports) for item in detail.models] == [("qwen3", 3)]


def test_a_timeline_has_no_holes_and_no_more_bars_than_fit() -> None:
    start = datetime(2024, 1, 30, tzinfo=UTC)
    for days, unit in ((10, "week"), (400, "month"), (1500, "quarter"), (4000, "year")):
        drawn = timeline([start, start + days * DAY, None])
        assert drawn is not None
        assert drawn.unit == unit
        assert sum(bucket.reports for bucket in drawn.buckets) == 2
        starts = [bucket.start for bucket in drawn.buckets]
        assert starts == sorted(set(starts))
        assert 2 <= len(starts) <= BUCKETS_MAX
    assert timeline([None]) is None


# ---- what helps


def test_one_action_of_several_reports_is_one_remedy_with_all_that_tell_it(store: Store) -> None:
    repo_id = put(
        store,
        (report(1), facts_of(1, remedy="--enforce-eager")),
        (report(2), facts_of(2, remedy="enforce_eager=True")),
        (report(3), facts_of(3, remedy="--enforce-eager", outcome="fails")),
        (report(4), facts_of(4, remedy="--max-num-seqs=8")),
        (report(5), facts_of(5)),
    )
    group(store, repo_id, ONE, 1, 2, 3, 4, 5)
    remedies = view_cluster(store, REPO, ONE).workarounds

    assert [(r.action, r.works_in, r.fails_in) for r in remedies] == [
        ("--enforce-eager", (1, 2), (3,)),
        ("--max-num-seqs=8", (4,), ()),
    ]
    assert {remedy.quote.text for remedy in remedies} == {BODY}
    assert remedies[0].cost == "20 % slower"


def test_a_slowdown_s_remedy_has_no_cost_for_being_told_beside_the_word_slower(store: Store) -> None:
    repo_id = put(store, (report(1), facts_of(1, remedy="--enforce-eager", failure_kind="slowdown")))
    group(store, repo_id, ONE, 1)

    assert view_cluster(store, REPO, ONE).workarounds[0].cost is None


def test_a_remedy_without_its_words_is_left_out(store: Store) -> None:
    facts = facts_of(1, remedy="--enforce-eager").model_copy(update={"evidence": ()})
    repo_id = put(store, (report(1), facts))
    group(store, repo_id, ONE, 1)

    assert view_cluster(store, REPO, ONE).workarounds == ()


def test_votes_and_reactions_bring_a_remedy_forward(store: Store) -> None:
    repo_id = put(
        store,
        (report(1), facts_of(1, remedy="--max-num-seqs=8")),
        (report(2), facts_of(2, remedy="--block-size 32")),
        (
            report(3),
            facts_of(3, remedy="--swap-space 4").model_copy(
                update={"evidence": (told("workarounds", "--swap-space 4", source="comment:77"),)}
            ),
        ),
    )
    group(store, repo_id, ONE, 1, 2, 3)
    liked = {"reactions": {"+1": 5, "-1": 1, "total_count": 6}}
    with store.unit_of_work() as session:
        save_comments(session, repo_id, [a_comment(77, 3, BODY, raw=liked)])
        for visitor in ("a", "b"):
            vote = {"repo_id": repo_id, "number": 2, "signal": "works", "visitor": visitor, "value": 1}
            session.connection().execute(VOTE.insert().values(**vote, voted_at=EARLY))
    remedies = view_cluster(store, REPO, ONE).workarounds

    assert [(r.action, r.votes, r.reactions) for r in remedies] == [
        ("--swap-space 4", 0, 4),
        ("--block-size 32", 2, 0),
        ("--max-num-seqs=8", 0, 0),
    ]


# ---- the fix, and what comes after it


def fixed(store: Store, *others: tuple[object, object]) -> None:
    """1 (canonical, closed) is fixed by a pull request that is in 0.10.0."""
    fix = Fix(state="fixed", pr="#90", source="comment:1")
    repo_id = put(
        store,
        (report(1, state="closed", closed_at=EARLY + DAY), facts_of(1, version="0.9.0", fix=fix)),
        *others,  # type: ignore[arg-type]
        (a_pull(90, merged_at=EARLY + DAY, state="closed"), facts_of(90)),
    )
    with store.unit_of_work() as session:
        save_releases(session, repo_id, [a_release("v0.10.0", 90, published_at=EARLY + 2 * DAY)])
    link(store, repo_id, 90, 1, "fixes")
    group(store, repo_id, ONE, 1, *(facts.number for _, facts in others))  # type: ignore[attr-defined]


def test_the_fix_is_that_of_the_member_that_knows_one(store: Store) -> None:
    fixed(store, (report(2), facts_of(2, remedy="--enforce-eager")))
    detail = view_cluster(store, REPO, ONE)

    assert detail.fix is not None
    assert (detail.fix.state, detail.fix.pr, detail.fix.released_in, detail.fix.number) == (
        "fixed",
        "#90",
        "0.10.0",
        1,
    )
    assert detail.fix.also == ("Still open: #2.",)
    assert detail.workarounds[0].superseded_by == "#90 in 0.10.0"


def test_reports_from_before_the_fix_do_not_keep_a_failure_alive(store: Store) -> None:
    fixed(store, (report(2, created_at=EARLY + 5 * DAY), facts_of(2, version="0.9.2")))
    detail = view_cluster(store, REPO, ONE)

    assert detail.closed_but_alive is None
    assert not detail.is_alive
    assert ids(store, alive=True) == []


def test_a_report_from_a_version_that_has_the_fix_is_named(store: Store) -> None:
    fixed(store, (report(2, created_at=EARLY + 5 * DAY), facts_of(2, version="0.11.0")))
    detail = view_cluster(store, REPO, ONE)

    assert detail.fix is not None
    assert "Reported from a version that has it: #2 (0.11.0)." in detail.fix.also
    assert detail.closed_but_alive is not None
    assert detail.closed_but_alive.reports_since == 1
    assert "1 of them from a version that has the fix" in detail.closed_but_alive.reason


@pytest.mark.usefixtures("stored")
def test_reports_after_the_closing_are_told(store: Store) -> None:
    alive = view_cluster(store, REPO, ONE).closed_but_alive

    assert alive is not None
    assert (alive.reports_since, alive.newest, alive.newest_at) == (2, 3, EARLY + 9 * DAY)
    assert alive.reason == "#1 was closed; 2 reports came after that."
    assert view_cluster(store, REPO, TWO).closed_but_alive is None


# ---- since when


def spans(store: Store, *told: Regression | str) -> None:
    """Reports that tell these ranges, or were met in these versions."""
    records = [
        (report(n), facts_of(n, span=item) if isinstance(item, Regression) else facts_of(n, version=item))
        for n, item in enumerate(told, 1)
    ]
    group(store, put(store, *records), ONE, *range(1, len(told) + 1))


def test_the_narrowest_range_that_reports_agree_on_is_told(store: Store) -> None:
    spans(
        store,
        Regression(last_working="0.8.0", first_failing="0.10.0"),
        Regression(last_working="0.8.5", first_failing="0.9.1", culprit="#70"),
        Regression(first_failing="0.9.2"),
    )
    detail = view_cluster(store, REPO, ONE)

    assert detail.regression == Regression(
        last_working="0.8.5", first_failing="0.9.1", still_failing=("0.9.2", "0.10.0"), culprit="#70"
    )
    assert detail.disagreements == ()
    assert len(detail.witnesses) == 3
    assert detail.witnesses[0].quotes[0].text == BODY


def test_who_tells_another_range_disagrees(store: Store) -> None:
    found = Regression(last_working="0.8.5", first_failing="0.9.1")
    spans(store, found, found, Regression(last_working="0.6.0", first_failing="0.7.0"))
    detail = view_cluster(store, REPO, ONE)
    (against,) = detail.disagreements

    assert detail.regression == found
    assert against.number == 3
    assert against.reason == "says that it fails in 0.7.0, where others say that it worked"


def test_who_met_it_before_the_range_disagrees(store: Store) -> None:
    spans(store, Regression(last_working="0.8.5", first_failing="0.9.1"), "0.8.0", "0.9.2")
    (against,) = view_cluster(store, REPO, ONE).disagreements

    assert (against.number, against.reason) == (2, "reported from 0.8.0, where others say that it worked")


def test_where_more_speak_against_a_range_than_for_it_none_is_told(store: Store) -> None:
    spans(store, Regression(last_working="0.8.5", first_failing="0.9.1"), "0.8.0", "0.7.0")
    detail = view_cluster(store, REPO, ONE)

    assert detail.regression is None
    assert [witness.number for witness in detail.disagreements] == [1]


def test_versions_without_an_order_are_kept_apart(store: Store) -> None:
    spans(store, Regression(last_working="0.8.5", first_failing="0.9.1"), Regression(first_failing="main"))
    detail = view_cluster(store, REPO, ONE)

    assert detail.regression == Regression(last_working="0.8.5", first_failing="0.9.1")
    assert detail.disagreements[0].reason == "its versions have no place in the order of releases"


def test_who_names_a_culprit_and_no_version_agrees_with_any_range(store: Store) -> None:
    spans(store, Regression(culprit="#70"))
    detail = view_cluster(store, REPO, ONE)

    assert detail.regression == Regression(culprit="#70")
    assert detail.disagreements == ()
