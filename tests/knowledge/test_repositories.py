"""Several repositories in one base: links, fixes and answers across them, and what must not be mixed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from app.extract.facts import Fix
from app.knowledge.cluster.judgements import judge
from app.knowledge.diagnosis.diagnose import diagnose
from app.knowledge.diagnosis.markdown import diagnosis_markdown
from app.knowledge.diagnosis.shapes import Diagnosis
from app.knowledge.fix.shapes import FixElsewhere, FixView
from app.knowledge.indexing import derive as linking
from app.knowledge.indexing.batches import rederive_all
from app.knowledge.indexing.derive import derive_issues
from app.knowledge.issue.relations import RelatedItem, likeness_of, related
from app.knowledge.issue.report import make_report, report_markdown
from app.knowledge.issue.view import view_issue
from app.store.derived.links import find_similar
from app.store.github.issues import find_repository, find_stored_repositories
from app.store.github.sync_state import begin_run, end_run
from app.store.session import Store
from app.store.tables import CLUSTER_MEMBER
from tests.knowledge.conftest import Keep
from tests.samples import EARLY, LATE, REPO, a_comment, a_pull, a_release, a_traceback, an_issue, fenced

FLASH = "flashinfer-ai/flashinfer"
ASCEND = "vllm-project/vllm-ascend"
BOTH = (REPO, FLASH)
CRASH = a_traceback(
    "RuntimeError: paged plan holds 48 tiles but the zebra workspace has room for 32",
    "flashinfer/zebra.py:plan",
    "flashinfer/jit/zebra_core.py:run_plan",
)
IN_VLLM = a_traceback(
    "RuntimeError: paged plan holds 48 tiles but the zebra workspace has room for 32",
    "vllm/v1/attention/backends/flashinfer.py:build",
    "flashinfer/zebra.py:plan",
    "flashinfer/jit/zebra_core.py:run_plan",
)
UNLIKE = a_traceback("KeyError: 'lm_head.weight_scale'", "vllm/model_executor/models/otter.py:load_weights")


def in_flash(number: int, **fields: object) -> object:
    return an_issue(number, **{"url": f"https://github.com/{FLASH}/issues/{number}", **fields})


def flash_crash(number: int = 70, title: str = "Zebra plan outgrows its workspace") -> object:
    return in_flash(number, title=title, body=fenced("Planning ends so:", CRASH))


def vllm_crash(
    number: int = 900, title: str = "[Bug]: zebra workspace has no room", said: str = "It ends so:"
) -> object:
    return an_issue(number, title=title, body=fenced(said, IN_VLLM))


def named(items: tuple[RelatedItem, ...]) -> dict[tuple[str, int], str]:
    return {(item.repo, item.number): item.kind for item in items}


def ask(store: Store, log: str = IN_VLLM, **options: object) -> Diagnosis:
    return diagnose(store, log, **{"repos": BOTH, **options})  # type: ignore[arg-type]


def fix_of(store: Store, number: int = 900, **options: str) -> FixView:
    return view_issue(store, REPO, number, **options).fix  # type: ignore[arg-type]


# Mentions


@pytest.fixture
def mentioned(store: Store, keep: Keep) -> Store:
    keep(an_issue(900, title="Zebra is slow", body=f"Their side of it is {FLASH}#70, I think."))
    keep(in_flash(70, title="Zebra plan outgrows its workspace", state="closed"), repo=FLASH)
    return store


def test_a_mention_is_related_from_both_ends_with_title_and_state(mentioned: Store) -> None:
    [there], [back] = related(mentioned, REPO, 900), related(mentioned, FLASH, 70)

    assert (there.repo, there.number, there.kind, there.title, there.state) == (
        FLASH,
        70,
        "mentions",
        "Zebra plan outgrows its workspace",
        "closed",
    )
    assert (back.repo, back.number, back.kind, back.title) == (REPO, 900, "mentions", "Zebra is slow")


def test_a_mention_of_what_is_not_stored_still_has_its_address(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=f"See {FLASH}#71."))
    [item] = related(store, REPO, 900)

    assert (item.repo, item.state, item.url) == (FLASH, "unknown", f"https://github.com/{FLASH}/issues/71")


def test_the_report_of_either_end_shows_the_other_with_the_words(mentioned: Store) -> None:
    ours, theirs = make_report(mentioned, REPO, 900).graph, make_report(mentioned, FLASH, 70).graph
    [edge] = theirs.edges

    assert ours.node(f"{FLASH}#70").title == "Zebra plan outgrows its workspace"
    assert (edge.source, edge.kind, edge.basis) == (f"{REPO}#900", "mentions", "said")
    assert edge.quote is not None
    assert edge.quote.text == f"Their side of it is {FLASH}#70, I think."
    assert edge.quote.source == f"{REPO}#900"
    assert theirs.other_end(edge).state == "open"


def test_the_report_as_markdown_links_to_the_repository_that_is_named(mentioned: Store) -> None:
    text = report_markdown(make_report(mentioned, FLASH, 70))

    assert f"https://github.com/{REPO}/issues/900" in text
    assert f"https://github.com/{FLASH}/issues/900" not in text


def test_one_number_in_two_repositories_is_two_relations(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=f"See #170 and {FLASH}#170."), an_issue(170, title="Ours"))
    keep(in_flash(170, title="Theirs"), repo=FLASH)

    assert {(item.repo, item.title) for item in related(store, REPO, 900)} == {
        (REPO, "Ours"),
        (FLASH, "Theirs"),
    }


def test_a_bare_number_is_an_issue_of_the_text_s_own_repository(store: Store, keep: Keep) -> None:
    keep(an_issue(170, title="Ours"))
    keep(in_flash(70, body="Same as #170, and as flashinfer #171; not vllm #172."), in_flash(170), repo=FLASH)

    assert {(item.repo, item.number) for item in related(store, FLASH, 70)} == {(FLASH, 170), (FLASH, 171)}
    assert related(store, REPO, 170) == ()


# Errors that are alike


def test_a_crash_of_vllm_and_the_flashinfer_issue_of_the_same_frames_are_similar(
    store: Store, keep: Keep
) -> None:
    keep(flash_crash(), in_flash(71, body=fenced("Other.", UNLIKE)), repo=FLASH)
    keep(
        vllm_crash(),
        an_issue(901, body=fenced("Another.", a_traceback("OSError: no otter", "vllm/otter.py:load"))),
    )
    [there] = [item for item in related(store, REPO, 900) if item.kind == "similar"]
    [back] = [item for item in related(store, FLASH, 70) if item.kind == "similar"]

    assert (there.repo, there.number) == (FLASH, 70)
    assert there.channel in {"log", "both"}
    assert (back.repo, back.number, back.score, back.band) == (REPO, 900, there.score, there.band)


def test_issues_that_share_words_but_no_error_are_not_linked_across(store: Store, keep: Keep) -> None:
    text = "The zebra planner is slower than the otter planner on long prompts with paged layouts."
    keep(in_flash(70, title="Zebra planner is slow", body=text), repo=FLASH)
    keep(an_issue(900, title="Zebra planner is slow", body=text))

    assert related(store, REPO, 900) == ()


def test_a_text_that_changed_takes_its_links_across_along(store: Store, keep: Keep) -> None:
    keep(flash_crash(), repo=FLASH)
    keep(vllm_crash())
    keep(an_issue(900, title="[Doc]: typo", body="A word is spelt wrong."))

    assert related(store, REPO, 900) == related(store, FLASH, 70) == ()


def test_links_across_are_few_symmetric_and_survive_a_rebuild(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "ACROSS_MAX", 2)
    keep(*(flash_crash(number) for number in range(70, 75)), repo=FLASH)
    keep(*(vllm_crash(number) for number in range(900, 904)))

    def links() -> set[tuple[str, int, str, int, float | None]]:
        with store.reading() as session:
            return {
                (repo, number, link.target_repo, link.target_number, link.score)
                for repo in BOTH
                for number, found in find_similar(
                    session, find_repository(session, repo) or 0, repo, range(1000), across=True
                ).items()
                for link in found
            }

    before = links()
    assert before
    assert {(there, other, repo, number, score) for repo, number, there, other, score in before} == before
    assert all(sum(link[:2] == end for link in before) <= 2 for end in {link[:2] for link in before})

    for repo in BOTH:
        rederive_all(store, repo, lambda _progress: None)
    assert links() == before


def test_links_across_take_no_place_from_those_within_and_join_no_clusters(store: Store, keep: Keep) -> None:
    keep(flash_crash(), repo=FLASH)
    keep(vllm_crash(900), vllm_crash(901))

    assert named(related(store, REPO, 900)) == {(REPO, 901): "similar", (FLASH, 70): "similar"}
    with store.reading() as session:
        rows = (
            session.connection().execute(select(*CLUSTER_MEMBER.c["repo_id", "number", "cluster_id"])).all()
        )
    places = {(repo_id, cluster) for repo_id, _, cluster in rows}
    assert len({repo_id for repo_id, _ in places}) == 2
    assert sorted(number for _, number, _ in rows) == [70, 900, 901]


def test_an_issue_that_can_be_read_no_longer_loses_its_links_across(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(flash_crash(), repo=FLASH)
    repo_id = keep(vllm_crash())
    monkeypatch.setattr("app.knowledge.indexing.derive.read_issue", lambda _text: 1 / 0)
    with store.unit_of_work() as session:
        derive_issues(session, repo_id, REPO, [900])

    assert related(store, FLASH, 70) == ()


def test_a_judgement_is_about_one_repository_s_issues(store: Store, keep: Keep) -> None:
    keep(flash_crash(901), repo=FLASH)
    keep(vllm_crash(900), vllm_crash(901))
    judge(store, REPO, 900, 901, "different")

    assert named(related(store, REPO, 900)) == {(FLASH, 901): "similar"}
    assert [item.repo for item in likeness_of(store, REPO, 900, 901)] == [REPO]


# Fixes


def test_a_fix_released_in_another_repository_is_told_with_its_name_and_for_nobody(
    store: Store, keep: Keep
) -> None:
    keep(an_issue(900), a_release("v0.9.2", published_at=LATE))
    keep(
        a_pull(77, body=f"Fixes {REPO}#900", merged_at=EARLY),
        a_release("v0.2.5", 77, published_at=LATE),
        repo=FLASH,
    )
    fix = fix_of(store, vllm_version="0.9.1", versions_of=REPO)

    assert (fix.state, fix.pr, fix.released_in, fix.earliest_possible) == (
        "merged_unreleased",
        f"{FLASH}#77",
        None,
        None,
    )
    assert fix.elsewhere == FixElsewhere(repo=FLASH, pr=f"{FLASH}#77", state="merged", released_in="0.2.5")
    assert fix.for_you == "unknown"
    assert f"{FLASH} 0.2.5" in fix.reason


def test_vllm_s_own_pull_request_counts_before_another_repository_s(store: Store, keep: Keep) -> None:
    keep(
        an_issue(900),
        a_pull(950, body="Fixes #900", merged_at=EARLY),
        a_release("v0.9.2", 950, published_at=LATE),
    )
    keep(
        a_pull(77, body=f"Fixes {REPO}#900", merged_at=EARLY),
        a_release("v0.2.5", 77, published_at=LATE),
        repo=FLASH,
    )
    fix = fix_of(store, vllm_version="0.9.1", versions_of=REPO)

    assert (fix.state, fix.pr, fix.released_in, fix.for_you, fix.elsewhere) == (
        "fixed",
        "#950",
        "0.9.2",
        "upgrade",
        None,
    )


@pytest.mark.parametrize(
    ("pull", "wanted"),
    [
        ({"merged_at": EARLY}, ("merged_unreleased", "merged")),
        ({}, ("in_progress", "open")),
        ({"state": "closed"}, ("not_fixed", None)),
        (None, ("unknown", "unknown")),
    ],
)
@pytest.mark.parametrize(
    "words", [f"Fixed by {FLASH}#177.", f"This was fixed in https://github.com/{FLASH}/pull/177"]
)
def test_words_that_name_another_repository_s_pull_request_are_never_taken_for_our_number(
    store: Store, keep: Keep, words: str, pull: dict[str, object] | None, wanted: tuple[str, str | None]
) -> None:
    keep(
        an_issue(900, comments=1),
        a_comment(5, 900, words, author_association="MEMBER"),
        a_pull(177, title="Something else", merged_at=EARLY),
        a_release("v0.9.2", 177, published_at=LATE),
    )
    if pull is not None:
        keep(a_pull(177, **pull), repo=FLASH)
    fix = fix_of(store)

    assert (fix.state, fix.elsewhere.state if fix.elsewhere else None) == wanted
    assert fix.released_in is None
    assert named(related(store, REPO, 900)) == {(FLASH, 177): "fixed_by"}


def test_a_fix_that_another_repository_took_back_is_none(store: Store, keep: Keep) -> None:
    keep(an_issue(900))
    keep(
        a_pull(77, title="Size the workspace", body=f"Fixes {REPO}#900", merged_at=EARLY),
        a_pull(78, title='Revert "Size the workspace"', body="Reverts #77", merged_at=LATE),
        repo=FLASH,
    )

    assert fix_of(store).state == "not_fixed"


def test_a_bare_number_behind_a_foreign_name_is_no_fix_of_ours(store: Store, keep: Keep) -> None:
    keep(
        an_issue(900, comments=1),
        a_comment(5, 900, "Fixed by FlashInfer #1177.", author_association="MEMBER"),
    )

    assert view_issue(store, REPO, 900).facts.fix is None  # type: ignore[union-attr]


def test_a_flashinfer_issue_s_own_numbers_are_its_own(store: Store, keep: Keep) -> None:
    keep(
        in_flash(70, comments=1), a_comment(5, 70, "Fixed by #177."), a_pull(177, merged_at=EARLY), repo=FLASH
    )
    view = view_issue(store, FLASH, 70)

    assert view.facts is not None
    assert view.facts.fix == Fix(state="fixed", pr="#177", source="comment:5")
    assert view.fix.state == "merged_unreleased"


# Diagnosis


def test_a_vllm_crash_whose_cause_is_a_flashinfer_issue_is_found(store: Store, keep: Keep) -> None:
    keep(an_issue(900, body=fenced("Other.", UNLIKE)))
    keep(
        flash_crash(),
        in_flash(71, body=fenced("Other.", UNLIKE)),
        a_pull(77, body="Fixes #70", merged_at=EARLY),
        a_release("v0.2.5", 77, published_at=LATE),
        repo=FLASH,
    )
    answer = ask(store, vllm_version="0.9.1")
    best = answer.matches[0]

    assert (best.repo, best.number, best.url) == (FLASH, 70, f"https://github.com/{FLASH}/issues/70")
    assert (answer.repo, best.fix and best.fix.state, best.fix and best.fix.released_in) == (
        REPO,
        "fixed",
        "0.2.5",
    )
    assert best.fix is not None
    assert best.fix.for_you == "unknown"
    assert f"{FLASH}#70" in answer.headline
    assert f"[{FLASH}#70](https://github.com/{FLASH}/issues/70)" in diagnosis_markdown(answer)


STARTED = "(APIServer pid=1) INFO 03-14 09:26:40 [api_server.py:1978] vLLM API server version 0.9.1\n"


@pytest.mark.parametrize(
    ("repos", "told", "wanted"),
    [
        ((REPO, FLASH), None, "unknown"),
        ((FLASH,), None, "unknown"),
        ((FLASH,), "0.2.4", "upgrade"),
    ],
    ids=["vllm first", "flashinfer alone, version in the log", "flashinfer alone, version told"],
)
def test_the_log_s_vllm_version_is_compared_with_vllm_releases_only(
    store: Store, keep: Keep, repos: tuple[str, ...], told: str | None, wanted: str
) -> None:
    keep(
        flash_crash(),
        a_pull(77, body="Fixes #70", merged_at=EARLY),
        a_release("v0.2.4", published_at=datetime(2026, 1, 1, tzinfo=UTC)),
        a_release("v0.2.5", 77, published_at=LATE),
        repo=FLASH,
    )
    [best, *_] = ask(store, STARTED + IN_VLLM, repos=repos, vllm_version=told).matches

    assert best.fix is not None
    assert best.fix.for_you == wanted


def test_an_excluded_number_is_one_of_the_default_repository(store: Store, keep: Keep) -> None:
    keep(vllm_crash(70), an_issue(901, body=fenced("Other.", UNLIKE)))
    keep(flash_crash(70), repo=FLASH)

    found = [(match.repo, match.number) for match in ask(store, exclude=frozenset({70})).matches]

    assert found[0] == (FLASH, 70)
    assert (REPO, 70) not in found


def test_an_answer_is_as_old_as_the_repository_that_is_furthest_behind(store: Store, keep: Keep) -> None:
    ends = {}
    for repo in (FLASH, REPO, ASCEND):
        repo_id = keep(an_issue(1), repo=repo)
        if repo == ASCEND:
            continue
        with store.unit_of_work() as session:
            end_run(session, begin_run(session, repo_id), outcome="complete")
        with store.reading() as session:
            ends[repo] = find_stored_repositories(session, (repo,)).as_of

    with store.reading() as session:
        assert find_stored_repositories(session, (REPO, FLASH, ASCEND)).as_of == ends[FLASH]
