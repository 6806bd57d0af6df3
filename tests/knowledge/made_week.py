"""A quarter of reports with one busy week, 2026-W15: what its digest must tell is known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.extract.facts import Facts, Regression, Workaround
from app.store.github.issues import save_comments, save_issues
from app.store.github.releases import save_releases
from app.store.records import IssueRecord
from app.store.session import Store
from tests.knowledge.made_clusters import facts_of, group, link, put, report, told
from tests.samples import REPO, a_comment, a_pull, a_release, an_issue

WEEK, MONDAY = "2026-W15", datetime(2026, 4, 6, tzinfo=UTC)
NEXT = MONDAY + timedelta(weeks=1)
GROWING, OLD_ONE, PAIR = "s1-aaaaaaaaaaaa", "s1-bbbbbbbbbbbb", "s1-cccccccccccc"
SECRET = "hf_abcdefghijklmnopqrstuvwxyzabcdefgh"
HOSTILE = "<script>alert(1)</script> ]]> & | `x`"


@dataclass(frozen=True)
class Row:
    """An issue and, if it reports a failure, what is known of it."""

    issue: IssueRecord
    facts: Facts


def at(weeks: int, days: int = 0, hours: int = 1) -> datetime:
    """A moment, so many weeks from the busy one on."""
    return MONDAY + timedelta(weeks=weeks, days=days, hours=hours)


def a_report(number: int, created_at: datetime, *, remedy: str = "", **more: Any) -> Row:
    fields = {
        name: more.pop(name)
        for name in ("title", "comments", "reactions", "state", "closed_at", "raw", "state_reason", "gone_at")
        if name in more
    }
    return Row(report(number, created_at=created_at, **fields), facts_of(number, remedy=remedy, **more))


def a_question(number: int, created_at: datetime | None) -> Row:
    return Row(an_issue(number, created_at=created_at, title="How do I serve it?"), Facts(number=number))


def rows() -> list[Row]:
    """The whole quarter, by number."""
    quiet = [a_report(100 + n, at(n - 10, days=2), gpu="A100") for n in range(10)]
    quiet += [a_question(120 + n, at(n - 10, days=3)) for n in range(10)]
    busy = [
        # grows: five reports after one in eight weeks
        *(a_report(200 + n, at(0, days=n), gpu="H100", comments=n) for n in range(5)),
        a_report(199, at(-4), gpu="H100"),
        # was closed, and is reported again
        a_report(210, at(-6), state="closed", closed_at=at(-5), state_reason="not_planned"),
        a_report(211, at(0, days=3), failure_kind="hang"),
        # a pair, with a remedy that works and one that does not
        a_report(220, at(0, days=1), remedy="--enforce-eager", gpu="H100", version="0.9.0"),
        a_report(221, at(0, days=2), remedy="Reboot the host", outcome="fails"),
        # tell since when they fail
        a_report(
            230, at(0, days=1), span=Regression(last_working="0.8.5", first_failing="0.9.0"), version="0.9.0"
        ),
        a_report(231, at(0, days=2), span=Regression(first_failing="v0.9.0", culprit="#77")),
        a_report(232, at(0, days=3), span=Regression(last_working="0.8.4"), failure_kind="slowdown"),
        a_report(233, at(0, days=4), span=Regression(still_failing=("main",))),
        # stand alone and are hit
        a_report(240, at(0, days=5), comments=9, reactions=4, title=f"[Bug]: {HOSTILE} {SECRET}"),
        a_report(241, MONDAY, raw={"number": 241, "x_dates_estimated": True}, failure_kind="oom"),
        a_question(250, at(0, days=6)),
        # at the edges, and what does not count
        a_report(260, MONDAY - timedelta(seconds=1)),
        a_report(261, NEXT),
        a_report(262, at(0, days=2), gone_at=at(0, days=3)),
        a_question(263, None),
        # get their fix
        *(a_report(n, at(-7), comments=n - 300) for n in (300, 301, 302, 303, 304)),
    ]
    return [*quiet, *busy]


def put_week(store: Store) -> int:
    """Stores the quarter; returns the repository's key."""
    repo_id = put(store, *((row.issue, row.facts) for row in rows()))
    with store.unit_of_work() as session:
        merged = {
            400: at(-2),
            401: at(0, days=2),
            402: at(0, days=1),
            403: at(-3),
            404: at(0, days=3),
            405: at(1),
        }
        save_issues(
            session, repo_id, [a_pull(n, merged_at=moment, created_at=at(0)) for n, moment in merged.items()]
        )
        save_releases(
            session,
            repo_id,
            [
                a_release("v0.8.5", 403, published_at=at(-1)),
                a_release("v0.9.1", 400, published_at=at(0, days=4)),
                a_release("v0.9.2rc1", 401, published_at=at(0, days=5), is_prerelease=True),
                a_release("v0.9.2", 405, published_at=at(2)),
            ],
        )
        save_comments(
            session,
            repo_id,
            [
                a_comment(900, 105, "Helps.", created_at=at(0, days=2)),
                a_comment(901, 105, "Helps.", created_at=at(-1)),
            ],
        )
    # 300: released in the week; 301: merged in it; 302: merged and taken back in it; 303: released before;
    # 304: merged after it
    fixes = {400: 300, 401: 301, 402: 302, 403: 303, 405: 304}
    for pull, issue in fixes.items():
        link(store, repo_id, pull, issue, "fixes")
    link(store, repo_id, 404, 402, "reverts")
    _tell_remedies_in_comments(store)
    _group(store, repo_id)
    return repo_id


def _tell_remedies_in_comments(store: Store) -> None:
    """One in a comment of the week, one in a comment of the week before, of an old report."""
    facts = Facts(
        number=105,
        is_failure=True,
        failure_kind="crash",
        gpus=("A100",),
        workarounds=tuple(
            Workaround(
                action=f"VLLM_USE_{n}=0", kind="env", outcome="works", source=f"comment:{n}", by="maintainer"
            )
            for n in (900, 901)
        ),
        evidence=(
            told("gpus", "A100"),
            *(told("workarounds", f"VLLM_USE_{n}=0", "Helps.", f"comment:{n}") for n in (900, 901)),
        ),
    )
    put(store, (report(105, created_at=at(-5, days=2)), facts))


def _group(store: Store, repo_id: int) -> None:
    together = {
        GROWING: (200, 199, 201, 202, 203, 204),
        OLD_ONE: (210, 211),
        PAIR: (220, 221),
    }
    for key, (canonical, *others) in together.items():
        group(store, repo_id, key, canonical, *others, text=f"ValueError | {key}")
    grouped = {number for numbers in together.values() for number in numbers}
    for row in rows():
        number = row.issue.number
        if row.facts.is_failure and number not in grouped:
            group(store, repo_id, f"s1-{number:012x}", number, text=f"KeyError | {number}")


__all__ = [
    "GROWING",
    "HOSTILE",
    "MONDAY",
    "NEXT",
    "OLD_ONE",
    "PAIR",
    "REPO",
    "SECRET",
    "WEEK",
    "put_week",
    "rows",
]
