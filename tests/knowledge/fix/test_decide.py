"""The truth of a fix, over made graphs of issues, pull requests, reverts and releases: no wrong `fixed`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from app.extract.facts import Fix
from app.knowledge.fix.decide import decide, seen_from
from app.knowledge.fix.shapes import Authority, Claim, FixCase, FixStatement, FixTruth, FixView
from app.store.github.releases import History, LandedPull, PullHistory, ReleaseDay

COMMIT = "73f48ce559b0455d3bbd8d1fc0e9b1ea3c4b1d2f"
OTHER = "0c0ffee0c0ffee0c0ffee0c0ffee0c0ffee0c0ff"


def day(number: int) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=number)


def tag(name: str, published: int, *, pre: bool = False) -> ReleaseDay:
    return ReleaseDay(f"v{name}", pre, day(published))


def merged(number: int, on: int) -> Claim:
    return Claim(number, "closed", day(on))


def waits(number: int) -> Claim:
    return Claim(number, "open")


def given_up(number: int) -> Claim:
    return Claim(number, "closed")


def told(
    *named: str,
    held: Iterable[str] = (),
    lacked: Iterable[str] = (),
    commit: str | None = None,
    reverts: Iterable[tuple[int, int]] = (),
    relands: Iterable[tuple[int, int]] = (),
    builds: dict[str, bool] | None = None,
) -> PullHistory:
    answers = {f"v{name}": True for name in held} | {f"v{name}": False for name in lacked} | (builds or {})
    return PullHistory(
        tuple(f"v{name}" for name in named),
        answers,
        commit,
        tuple(LandedPull(n, day(d)) for n, d in reverts),
        tuple(LandedPull(n, day(d)) for n, d in relands),
    )


def said(
    state: str = "fixed",
    released: str | None = None,
    by: Authority = "maintainer",
    quote: str = "Fixed by #8.",
    pr: str = "#8",
    source: str = "comment:5",
) -> FixStatement:
    return FixStatement(Fix(state=state, pr=pr, released_in=released, source=source), by, quote)  # type: ignore[arg-type]


# Releases 0.9.1 (day 10), 0.9.2 (20), 0.9.3 (30, from the old branch), 0.10.0 (28), 0.10.1 (40), 0.11.0 (50)
DAYS = (
    tag("0.9.1", 10),
    tag("0.9.2rc1", 18, pre=True),
    tag("0.9.2", 20),
    tag("0.10.0", 28),
    tag("0.9.3", 30),
    tag("0.10.1", 40),
    tag("0.11.0", 50),
)
UP_TO_092 = DAYS[:3]
UP_TO_0100 = DAYS[:4]
OPEN = {"state": "open"}
DONE = {"state": "closed", "state_reason": "completed"}
STALE = {"state": "closed", "state_reason": "not_planned", "labels": ("stale",)}
Wanted = tuple[str, str | None, str | None, str | None]


def a_case(
    issue: dict[str, object],
    *claims: Claim,
    word: FixStatement | None = None,
    releases: tuple[ReleaseDay, ...] = DAYS,
    **pulls: PullHistory,
) -> FixCase:
    known = {int(name[1:]): item for name, item in pulls.items()}
    known = {claim.number: PullHistory() for claim in claims} | known
    return FixCase(claims=claims, stated=word, history=History(releases, known), **issue)  # type: ignore[arg-type]


REVERTED = a_case(DONE, merged(7, 12), p7=told("0.9.2", reverts=[(9, 22)]), p9=told("0.10.0"))
TABLE: list[tuple[str, FixCase, Wanted]] = [
    # ---- nothing merged
    ("open, nothing known", a_case(OPEN), ("not_fixed", None, None, None)),
    ("completed, nothing known", a_case(DONE), ("unknown", None, None, None)),
    ("closed without a reason", a_case({"state": "closed"}), ("unknown", None, None, None)),
    ("closed as stale", a_case(STALE), ("closed_unresolved", None, None, None)),
    (
        "closed by the bot, which calls it completed",
        a_case({**DONE, "labels": ("stale",)}),
        ("closed_unresolved", None, None, None),
    ),
    (
        "the stale label in capitals",
        a_case({**DONE, "labels": ("Stale",)}),
        ("closed_unresolved", None, None, None),
    ),
    ("open with the stale label", a_case({**OPEN, "labels": ("stale",)}), ("not_fixed", None, None, None)),
    (
        "closed as not planned",
        a_case({"state": "closed", "state_reason": "not_planned"}),
        ("closed_unresolved", None, None, None),
    ),
    (
        "closed as a duplicate of nothing known",
        a_case({"state": "closed", "state_reason": "duplicate"}),
        ("closed_unresolved", None, None, None),
    ),
    ("reopened", a_case({"state": "open", "state_reason": "reopened"}), ("not_fixed", None, None, None)),
    ("a pull request waits", a_case(OPEN, waits(7)), ("in_progress", "#7", None, None)),
    ("stale, but a pull request waits", a_case(STALE, waits(7)), ("in_progress", "#7", None, None)),
    ("a pull request was given up", a_case(OPEN, given_up(7)), ("not_fixed", None, None, None)),
    ("closed, its pull request was given up", a_case(DONE, given_up(7)), ("unknown", None, None, None)),
    (
        "stale, its pull request was given up",
        a_case(STALE, given_up(7)),
        ("closed_unresolved", None, None, None),
    ),
    ("one given up, one waits", a_case(OPEN, given_up(6), waits(7)), ("in_progress", "#7", None, None)),
    (
        "given up, yet the notes name the number",
        a_case(DONE, given_up(7), p7=told("0.9.2")),
        ("unknown", None, None, None),
    ),
    (
        "open, yet the notes name the number",
        a_case(OPEN, waits(7), p7=told("0.9.2")),
        ("in_progress", "#7", None, None),
    ),
    # ---- the reporter names what was in main or in a release before the report
    (
        "named by the reporter after its release, and not stored",
        a_case({**OPEN, "reported_at": day(25)}, word=said(source="body"), p8=told("0.9.2")),
        ("not_fixed", None, None, None),
    ),
    (
        "named by the reporter after its merge",
        a_case({**OPEN, "reported_at": day(16)}, merged(8, 15), word=said(source="title"), p8=told("0.9.2")),
        ("not_fixed", None, None, None),
    ),
    (
        "named by the reporter before its release",
        a_case({**OPEN, "reported_at": day(15)}, word=said(source="body"), p8=told("0.9.2")),
        ("fixed", "#8", "0.9.2", None),
    ),
    (
        "named in a comment, to a reporter of an older release",
        a_case({**OPEN, "reported_at": day(25)}, word=said(), p8=told("0.9.2")),
        ("fixed", "#8", "0.9.2", None),
    ),
    # ---- merged: the notes
    ("merged and named", a_case(DONE, merged(7, 15), p7=told("0.9.2")), ("fixed", "#7", "0.9.2", None)),
    (
        "merged and named, the issue is open",
        a_case(OPEN, merged(7, 15), p7=told("0.9.2")),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "merged and named, the issue is stale",
        a_case(STALE, merged(7, 15), p7=told("0.9.2")),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "back-ported: named in two lines",
        a_case(DONE, merged(7, 25), p7=told("0.10.0", "0.9.3")),
        ("fixed", "#7", "0.9.3", None),
    ),
    (
        "back-ported later than released",
        a_case(DONE, merged(7, 29), p7=told("0.9.3", "0.10.1")),
        ("fixed", "#7", "0.9.3", None),
    ),
    (
        "cherry-picked: the notes name it, main's commit is not in it",
        a_case(DONE, merged(7, 19), p7=told("0.9.2", lacked=["0.9.2"])),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "cherry-picked without a word: the next minor has it",
        a_case(DONE, merged(7, 19), p7=told(held=["0.10.0"], lacked=["0.9.2"])),
        ("fixed", "#7", "0.10.0", None),
    ),
    (
        "named later than the comparison finds it",
        a_case(DONE, merged(7, 15), p7=told("0.10.0", held=["0.9.2"])),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "named in a prerelease only",
        a_case(DONE, merged(7, 15), p7=told("0.9.2rc1"), releases=DAYS[:2]),
        ("merged_unreleased", "#7", None, None),
    ),
    (
        "named in a tag that says rc, not marked",
        a_case(DONE, merged(7, 15), p7=told("0.9.2rc2"), releases=(DAYS[0], tag("0.9.2rc2", 19))),
        ("merged_unreleased", "#7", None, None),
    ),
    (
        "prerelease, then release",
        a_case(DONE, merged(7, 15), p7=told("0.9.2rc1", "0.9.2")),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "named in a tag that is no version",
        a_case(DONE, merged(7, 15), p7=told("nightly"), releases=(DAYS[0], tag("nightly", 16))),
        ("merged_unreleased", "#7", None, "vnightly"),
    ),
    (
        "named in a post release",
        a_case(DONE, merged(7, 15), p7=told("0.9.1.post1"), releases=(DAYS[0], tag("0.9.1.post1", 16))),
        ("fixed", "#7", "0.9.1.post1", None),
    ),
    (
        "ten comes after nine",
        a_case(DONE, merged(7, 15), p7=told("0.10.0", "0.9.2")),
        ("fixed", "#7", "0.9.2", None),
    ),
    # ---- merged: comparisons, and none
    (
        "merged, no release since",
        a_case(DONE, merged(7, 21), releases=UP_TO_092),
        ("merged_unreleased", "#7", None, None),
    ),
    (
        "merged, no releases stored",
        a_case(DONE, merged(7, 21), releases=()),
        ("merged_unreleased", "#7", None, None),
    ),
    (
        "merged before a release whose branch may be older",
        a_case(DONE, merged(7, 19), releases=UP_TO_092),
        ("merged_unreleased", "#7", None, "0.9.2"),
    ),
    (
        "the branch was cut before the merge",
        a_case(DONE, merged(7, 19), p7=told(lacked=["0.9.2"]), releases=UP_TO_092),
        ("merged_unreleased", "#7", None, None),
    ),
    (
        "cut before the merge, the next is not compared",
        a_case(DONE, merged(7, 19), p7=told(lacked=["0.9.2"]), releases=UP_TO_0100),
        ("merged_unreleased", "#7", None, "0.10.0"),
    ),
    (
        "the first possible is the first by date",
        a_case(DONE, merged(7, 29)),
        ("merged_unreleased", "#7", None, "0.9.3"),
    ),
    (
        "a prerelease is not the first possible",
        a_case(DONE, merged(7, 17), releases=DAYS[:2]),
        ("merged_unreleased", "#7", None, None),
    ),
    (
        "compared: in the release",
        a_case(DONE, merged(7, 15), p7=told(held=["0.9.2"])),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "compared: not in the first, in the second",
        a_case(DONE, merged(7, 19), p7=told(held=["0.10.0"], lacked=["0.9.2"])),
        ("fixed", "#7", "0.10.0", None),
    ),
    (
        "compared with a build only",
        a_case(DONE, merged(7, 21), p7=told(builds={OTHER: True}), releases=UP_TO_092),
        ("merged_unreleased", "#7", None, None),
    ),
    # ---- several
    (
        "two merged, one released",
        a_case(DONE, merged(7, 15), merged(9, 21), p7=told("0.9.2"), releases=UP_TO_092),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "two merged, both released: the last one counts",
        a_case(DONE, merged(7, 15), merged(9, 21), p7=told("0.9.2"), p9=told("0.10.0")),
        ("fixed", "#9", "0.10.0", None),
    ),
    (
        "two merged, none released",
        a_case(DONE, merged(7, 21), merged(9, 22), releases=UP_TO_092),
        ("merged_unreleased", "#9", None, None),
    ),
    (
        "one merged, a later one waits, and it is open",
        a_case(OPEN, merged(7, 15), waits(9), p7=told("0.9.2")),
        ("in_progress", "#9", None, None),
    ),
    (
        "one merged, an earlier one waits, and it is open",
        a_case(OPEN, merged(7, 15), waits(5), p7=told("0.9.2")),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "one merged, a later one waits, and it is closed",
        a_case(DONE, merged(7, 15), waits(9), p7=told("0.9.2")),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "one merged, one given up",
        a_case(DONE, merged(7, 21), given_up(9), releases=UP_TO_092),
        ("merged_unreleased", "#7", None, None),
    ),
    # ---- reverts
    (
        "reverted before its release",
        a_case(DONE, merged(7, 12), p7=told("0.9.2", reverts=[(9, 14)]), p9=told("0.9.2")),
        ("not_fixed", None, None, None),
    ),
    (
        "reverted before its release, compared",
        a_case(DONE, merged(7, 12), p7=told(held=["0.9.2"], reverts=[(9, 14)])),
        ("not_fixed", None, None, None),
    ),
    (
        "reverted after its release",
        REVERTED,
        ("not_fixed", None, None, None),
    ),
    (
        "reverted, not released",
        a_case(OPEN, merged(7, 21), p7=told(reverts=[(9, 22)]), releases=UP_TO_092),
        ("not_fixed", None, None, None),
    ),
    (
        "reverted, a second try waits",
        a_case(OPEN, merged(7, 12), waits(11), p7=told("0.9.2", reverts=[(9, 22)])),
        ("in_progress", "#11", None, None),
    ),
    (
        "reverted, a second try is merged",
        a_case(DONE, merged(7, 12), merged(11, 24), p7=told("0.9.2", reverts=[(9, 22)]), p11=told("0.10.0")),
        ("fixed", "#11", "0.10.0", None),
    ),
    (
        "reverted, a second try is not released",
        a_case(DONE, merged(7, 12), merged(11, 24), p7=told("0.9.2", reverts=[(9, 22)]), releases=UP_TO_092),
        ("merged_unreleased", "#11", None, None),
    ),
    (
        "re-landed: the re-landing's release",
        a_case(
            DONE, merged(7, 12), p7=told("0.9.2", reverts=[(9, 22)], relands=[(10, 25)]), p10=told("0.10.0")
        ),
        ("fixed", "#10", "0.10.0", None),
    ),
    (
        "re-landed, not released",
        a_case(
            DONE, merged(7, 12), p7=told("0.9.2", reverts=[(9, 22)], relands=[(10, 25)]), releases=UP_TO_092
        ),
        ("merged_unreleased", "#10", None, None),
    ),
    (
        "the revert was reverted",
        a_case(
            DONE,
            merged(7, 12),
            p7=told("0.9.2", reverts=[(9, 22)]),
            p9=told(reverts=[(10, 25)]),
            p10=told("0.10.0"),
        ),
        ("fixed", "#10", "0.10.0", None),
    ),
    (
        "the revert's revert was reverted",
        a_case(
            DONE,
            merged(7, 12),
            p7=told("0.9.2", reverts=[(9, 22)]),
            p9=told(reverts=[(10, 25)]),
            p10=told("0.10.0", reverts=[(11, 29)]),
        ),
        ("not_fixed", None, None, None),
    ),
    (
        "re-landed and reverted again",
        a_case(
            DONE,
            merged(7, 12),
            p7=told("0.9.2", reverts=[(9, 22), (11, 29)], relands=[(10, 25)]),
            p10=told("0.10.0"),
        ),
        ("not_fixed", None, None, None),
    ),
    (
        "the re-landing was reverted",
        a_case(
            DONE,
            merged(7, 12),
            p7=told("0.9.2", reverts=[(9, 22)], relands=[(10, 25)]),
            p10=told("0.10.0", reverts=[(11, 29)]),
        ),
        ("not_fixed", None, None, None),
    ),
    (
        "re-landed twice",
        a_case(
            DONE,
            merged(7, 12),
            p7=told("0.9.2", reverts=[(9, 14), (11, 29)], relands=[(10, 16), (12, 35)]),
            p12=told("0.10.1"),
        ),
        ("fixed", "#12", "0.10.1", None),
    ),
    (
        "reverts in a circle end",
        a_case(DONE, merged(7, 12), p7=told("0.9.2", reverts=[(9, 22)]), p9=told(reverts=[(7, 25)])),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "a revert older than the fix is not its revert",
        a_case(DONE, merged(7, 12), p7=told("0.9.2", reverts=[(5, 3)])),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "one of two is reverted",
        a_case(DONE, merged(7, 12), merged(8, 15), p7=told("0.9.2"), p8=told("0.9.2", reverts=[(9, 16)])),
        ("fixed", "#7", "0.9.2", None),
    ),
    (
        "the fix is itself a revert",
        a_case(DONE, merged(9, 22), p9=told("0.10.0")),
        ("fixed", "#9", "0.10.0", None),
    ),
    # ---- words
    (
        "a maintainer names pull request and release",
        a_case(DONE, word=said(released="0.9.3")),
        ("fixed", "#8", "0.9.3", None),
    ),
    ("a maintainer names no release", a_case(DONE, word=said()), ("merged_unreleased", "#8", None, None)),
    (
        "a maintainer names a release candidate",
        a_case(DONE, word=said(released="0.9.3rc1")),
        ("merged_unreleased", "#8", None, None),
    ),
    (
        "a maintainer without a quote",
        a_case(DONE, word=said(released="0.9.3", quote="")),
        ("unknown", "#8", None, None),
    ),
    (
        "somebody names pull request and release",
        a_case(DONE, word=said(released="0.9.3", by="other")),
        ("unknown", "#8", None, None),
    ),
    (
        "somebody says it is merged",
        a_case(OPEN, word=said("merged_unreleased", by="other")),
        ("unknown", "#8", None, None),
    ),
    (
        "somebody says it is under way",
        a_case(OPEN, word=said("in_progress", by="other")),
        ("in_progress", "#8", None, None),
    ),
    (
        "somebody names one, another waits",
        a_case(OPEN, waits(7), word=said(released="0.9.3", by="other")),
        ("in_progress", "#7", None, None),
    ),
    (
        "a card names the release",
        a_case(DONE, word=said(released="0.9.3", by="card", quote="")),
        ("fixed", "#8", "0.9.3", None),
    ),
    (
        "somebody names one that the notes name",
        a_case(DONE, word=said(by="other"), p8=told("0.10.0")),
        ("fixed", "#8", "0.10.0", None),
    ),
    (
        "somebody names one that a prerelease names",
        a_case(DONE, word=said(by="other"), p8=told("0.9.2rc1")),
        ("unknown", "#8", None, None),
    ),
    (
        "named by the notes and reverted",
        a_case(DONE, word=said(), p8=told("0.9.2", reverts=[(9, 25)])),
        ("not_fixed", None, None, None),
    ),
    (
        "a maintainer's release, and it is merged",
        a_case(DONE, merged(8, 19), word=said(released="0.9.3")),
        ("fixed", "#8", "0.9.3", None),
    ),
    (
        "somebody's release, and it is merged",
        a_case(DONE, merged(8, 29), word=said(released="0.9.3", by="other")),
        ("merged_unreleased", "#8", None, "0.9.3"),
    ),
    (
        "words against the notes",
        a_case(DONE, merged(8, 19), word=said(released="0.9.3"), p8=told("0.9.2")),
        ("fixed", "#8", "0.9.2", None),
    ),
    (
        "a maintainer calls it fixed, but it waits",
        a_case(OPEN, waits(8), word=said(released="0.9.3")),
        ("in_progress", "#8", None, None),
    ),
    (
        "a maintainer calls it fixed, but it was given up",
        a_case(DONE, given_up(8), word=said(released="0.9.3")),
        ("unknown", None, None, None),
    ),
    (
        "a maintainer calls it fixed, but it was reverted",
        a_case(DONE, merged(8, 12), word=said(released="0.9.2"), p8=told(reverts=[(9, 22)])),
        ("not_fixed", None, None, None),
    ),
    (
        "words that name no release it could be",
        a_case(DONE, word=said(released="the next one")),
        ("merged_unreleased", "#8", None, None),
    ),
]
CASES = [pytest.param(case, wanted, id=name) for name, case, wanted in TABLE]


@pytest.mark.parametrize(("case", "wanted"), CASES)
def test_the_state_of_a_made_case(case: FixCase, wanted: Wanted) -> None:
    view = decide(case).view

    assert (view.state, view.pr, view.released_in, view.earliest_possible) == wanted
    assert (view.source == "estimated") == (view.earliest_possible is not None)
    assert view.reason.endswith(".")


@pytest.mark.parametrize(("case", "wanted"), CASES)
def test_fixed_always_has_a_pull_request_a_release_and_a_ground(case: FixCase, wanted: Wanted) -> None:
    view = decide(case).view
    is_merged = any(claim.merged_at for claim in case.claims)
    is_quoted = case.stated is not None and case.stated.is_trusted
    is_named = any(item.named_in for item in case.history.pulls.values())

    if view.state == "fixed":
        assert view.pr
        assert view.released_in
        assert is_merged or is_quoted or is_named


def test_a_maintainer_s_word_is_quoted() -> None:
    case = a_case(DONE, word=said(released="0.9.3", quote="Fixed by #8,\nin 0.9.3."))

    assert decide(case).view.reason == 'A maintainer says: "Fixed by #8, in 0.9.3.".'


def test_any_mix_of_facts_yields_no_fixed_without_a_ground() -> None:
    claims = [
        (),
        (merged(7, 15),),
        (waits(7),),
        (given_up(7),),
        (merged(7, 15), waits(8)),
        (merged(7, 12), merged(8, 20)),
    ]
    pulls = [
        told(),
        told("0.9.2"),
        told("0.9.2rc1"),
        told(held=["0.10.0"], lacked=["0.9.2"]),
        told("0.9.2", reverts=[(9, 22)]),
        told("0.9.2", reverts=[(9, 22)], relands=[(10, 25)]),
    ]
    words = [None, said(by="other"), said(released="0.9.3", by="other"), said(), said(released="0.9.3")]
    for issue, some, seventh, eighth, word in product([OPEN, DONE, STALE], claims, pulls, pulls, words):
        case = a_case(issue, *some, word=word, p7=seventh, p8=eighth)
        view = decide(case).view
        if view.state != "fixed":
            assert view.released_in is None
            continue
        number = int((view.pr or "#0")[1:])
        named = history_of(case, number)
        by_words = word is not None and word.is_trusted and view.released_in == word.fix.released_in
        assert f"v{view.released_in}" in named or by_words
        assert number == 10 or not history_of(case, number, reverts=True)


def history_of(case: FixCase, number: int, *, reverts: bool = False) -> set[str]:
    known = case.history.pulls.get(number, PullHistory())
    if reverts:
        return {str(item.number) for item in known.reverted_by}
    known = known if number != 10 else told("0.10.0")
    return {*known.named_in, *(name for name, holds in known.answers.items() if holds)}


# ---- from the caller's version

PLAIN = a_case(DONE, merged(7, 15), p7=told("0.9.2", commit=COMMIT, builds={OTHER: False}))
MINOR = a_case(DONE, merged(7, 21), p7=told("0.10.0"), releases=UP_TO_0100)
BACKPORT = a_case(DONE, merged(7, 29), p7=told("0.9.3", "0.10.1"))
PATCH_ONLY = a_case(DONE, merged(7, 29), p7=told("0.9.3"))
CANDIDATE = a_case(DONE, merged(7, 15), p7=told("0.9.2rc1", "0.9.2"))
WAITING = a_case(DONE, merged(7, 21), p7=told(commit=COMMIT, builds={OTHER: False}), releases=UP_TO_092)
ESTIMATED = a_case(DONE, merged(7, 19), releases=UP_TO_0100)

SEEN = [
    ("the release before", PLAIN, "0.9.1", "upgrade", "0.9.2"),
    ("an old post release", PLAIN, "0.8.5.post1", "upgrade", "0.9.2"),
    ("with a v", PLAIN, "v0.9.1", "upgrade", "0.9.2"),
    ("the release itself", PLAIN, "0.9.2", "already_included", "0.9.2"),
    ("the release for a CUDA version", PLAIN, "0.9.2+cu128", "already_included", "0.9.2"),
    ("its post release", PLAIN, "0.9.2.post1", "already_included", "0.9.2"),
    ("a later release", PLAIN, "0.10.0", "already_included", "0.9.2"),
    ("a release that is not stored", PLAIN, "0.12.0", "already_included", "0.9.2"),
    ("a later build", PLAIN, "0.10.0rc1.dev5+gabc", "already_included", "0.9.2"),
    ("a candidate of the release", PLAIN, "0.9.2rc2", "unknown", "0.9.2"),
    ("a build between", PLAIN, "0.9.2.dev12+g1234567", "unknown", "0.9.2"),
    ("a build between, of the next post release", PLAIN, "0.9.1.post1.dev3", "unknown", "0.9.2"),
    ("a candidate of the release before", PLAIN, "0.9.1rc2.dev9", "upgrade", "0.9.2"),
    ("the fix's own commit", PLAIN, "0.9.2.dev12+g73f48ce55", "already_included", "0.9.2"),
    (
        "the fix's own commit with a date",
        PLAIN,
        "0.9.2.dev12+g73f48ce55.d20260116",
        "already_included",
        "0.9.2",
    ),
    ("the fix's own commit in a nightly's tag", PLAIN, f"nightly-{COMMIT}", "already_included", "0.9.2"),
    ("a commit that was compared and lacks it", PLAIN, "0.9.2.dev3+g0c0ffee0c", "upgrade", "0.9.2"),
    ("too few digits to be a commit", PLAIN, "0.9.2.dev12+g73f48", "unknown", "0.9.2"),
    ("no version", PLAIN, "main", "unknown", "0.9.2"),
    ("an empty version", PLAIN, "", "unknown", "0.9.2"),
    ("a candidate that has it", CANDIDATE, "0.9.2rc1", "already_included", "0.9.2"),
    ("a candidate after one that has it", CANDIDATE, "0.9.2rc2", "already_included", "0.9.2"),
    ("a candidate before one that has it", CANDIDATE, "0.9.2rc0", "unknown", "0.9.2"),
    ("a build of the old line between", MINOR, "0.9.3.dev4", "unknown", "0.10.0"),
    ("a candidate of the minor", MINOR, "0.10.0rc1", "unknown", "0.10.0"),
    ("a patch of the old line", MINOR, "0.9.3", "upgrade", "0.10.0"),
    ("back-port: before it", BACKPORT, "0.9.2", "upgrade", "0.9.3"),
    ("back-port: itself", BACKPORT, "0.9.3", "already_included", "0.9.3"),
    ("back-port: a later patch of its line", BACKPORT, "0.9.4", "already_included", "0.9.3"),
    ("back-port: the newer line's release without it", BACKPORT, "0.10.0", "upgrade", "0.10.1"),
    ("back-port: the newer line's release with it", BACKPORT, "0.10.1", "already_included", "0.9.3"),
    ("back-port: a line after both", BACKPORT, "0.11.0", "already_included", "0.9.3"),
    ("only the old line has it: a release before the merge", PATCH_ONLY, "0.10.0", "not_fixed", "0.9.3"),
    ("only the old line has it: a build of the newer", PATCH_ONLY, "0.10.1rc1", "unknown", "0.9.3"),
    ("only the old line has it: the newer line's next", PATCH_ONLY, "0.10.1", "not_fixed", "0.9.3"),
    ("only the old line has it: a line cut later", PATCH_ONLY, "0.11.0", "already_included", "0.9.3"),
    ("merged only: a release", WAITING, "0.9.2", "not_fixed", None),
    ("merged only: an old build", WAITING, "0.9.2rc1", "not_fixed", None),
    ("merged only: a newer build", WAITING, "0.9.3.dev4+g1234567", "unknown", None),
    ("merged only: its own commit", WAITING, "0.9.3.dev4+g73f48ce55", "already_included", None),
    ("merged only: a commit that lacks it", WAITING, "0.9.3.dev1+g0c0ffee0c", "not_fixed", None),
    ("merged only: a release that is not stored", WAITING, "0.10.0", "unknown", None),
    ("estimated: before the first possible", ESTIMATED, "0.9.1", "not_fixed", None),
    ("estimated: the first possible", ESTIMATED, "0.9.2", "unknown", None),
    ("estimated: after it", ESTIMATED, "0.10.0", "unknown", None),
    ("estimated: the second line that began after it", ESTIMATED, "0.11.0", "already_included", None),
    ("estimated: a build of that line", ESTIMATED, "0.11.0rc1", "unknown", None),
    ("in progress", a_case(OPEN, waits(7)), "0.9.1", "not_fixed", None),
    ("not fixed", a_case(OPEN), "0.9.1", "not_fixed", None),
    ("stale", a_case(STALE), "0.9.1", "not_fixed", None),
    ("unknown", a_case(DONE), "0.9.1", "unknown", None),
    ("reverted after its release: from that release", REVERTED, "0.9.2", "not_fixed", None),
]


@pytest.mark.parametrize(
    ("case", "version", "wanted", "release"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN]
)
def test_a_fix_is_seen_from_a_version(case: FixCase, version: str, wanted: str, release: str | None) -> None:
    truth = decide(case)
    view = seen_from(truth, version)

    assert (view.for_you, view.released_in) == (wanted, release)
    assert view.state == truth.view.state


def test_an_unknown_build_is_told_why() -> None:
    assert seen_from(decide(PLAIN), "0.9.2rc2").reason.endswith(
        "Your build 0.9.2rc2 came after 0.9.1, which lacks it, and before 0.9.2, which has it: it may be either."
    )


def test_the_other_releases_are_told() -> None:
    truth = decide(BACKPORT)

    assert truth.view.also_in == ("0.10.1",)
    assert seen_from(truth, "0.10.0").also_in == ("0.9.3",)


def test_without_a_version_nothing_is_said_of_it() -> None:
    truth = FixTruth(FixView(state="fixed", pr="#7", released_in="0.9.2"))

    assert seen_from(truth, None) == truth.view
