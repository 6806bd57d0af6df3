"""States, ages and figures are said in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.extract.facts import Regression
from app.knowledge.fix.shapes import FixView
from app.knowledge.labels import FOR_YOU
from app.knowledge.launch import CommandPart, ComposedCommand
from app.web.views.filters import (
    SHADES,
    age,
    percent,
    plural,
    range_words,
    rfc3339,
    shade,
    share,
    stamp,
    version,
)
from app.web.views.render import _environment

NOW = datetime(2026, 6, 3, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=50), "50 seconds ago"),
        (timedelta(minutes=42), "42 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(days=3), "3 days ago"),
        (timedelta(days=56), "8 weeks ago"),
        (timedelta(days=100), "3 months ago"),
        (timedelta(days=800), "2 years ago"),
    ],
)
def test_ages_are_said_in_words(ago: timedelta, words: str) -> None:
    assert age(NOW - ago, NOW) == words


def test_times_without_a_zone_are_utc() -> None:
    assert rfc3339(datetime(2026, 6, 3, 6)) == "2026-06-03T06:00:00Z"  # noqa: DTZ001
    assert stamp(NOW) == "3 Jun 2026, 06:00 UTC"


@pytest.mark.parametrize(
    ("score", "words"),
    [(0.0, "under 1"), (0.005, "under 1"), (0.092, "9"), (0.97, "97"), (0.999, "over 99"), (1.0, "over 99")],
)
def test_a_chance_is_never_a_flat_nothing_or_all(score: float, words: str) -> None:
    assert percent(score) == f"{words}\u2009%"


def test_versions_lose_their_v_and_words_keep_it() -> None:
    assert (version("v0.19.0"), version("vllm-nightly"), version(None)) == ("0.19.0", "vllm-nightly", "")


def fix_words(fix: FixView | None) -> tuple[str, str]:
    source = (
        '{% from "_signs.html" import fix, fix_advice %}{{ fix(view) | striptags }}|{{ fix_advice(view) }}'
    )
    sign, _, advice = _environment().from_string(source).render(view=fix).partition("|")
    return sign, advice


@pytest.mark.parametrize(
    ("fix", "words"),
    [
        (None, ("Fix unknown", "")),
        (
            FixView(state="fixed", pr="#39064", released_in="v0.20.2", for_you="upgrade"),
            ("Fixed by #39064, in 0.20.2", "Upgrade to 0.20.2: #39064 is in it."),
        ),
        (FixView(state="merged_unreleased", pr="#7"), ("Merged, #7, in no known release", "")),
        (FixView(state="not_fixed", for_you="not_fixed"), ("Not fixed", FOR_YOU["not_fixed"])),
    ],
)
def test_a_fix_state_names_its_pull_request_and_release_and_what_to_do(
    fix: FixView | None, words: tuple[str, str]
) -> None:
    assert fix_words(fix) == words


def test_figures_agree_with_their_noun() -> None:
    assert (plural(1, "issue"), plural(0, "issue"), plural(2, "remedy", "remedies")) == (
        "1 issue",
        "0 issues",
        "2 remedies",
    )


@pytest.mark.parametrize(
    ("part", "told"), [(0, "0\u2009%"), (0.005, "under 1\u2009%"), (0.346, "35\u2009%"), (1, "100\u2009%")]
)
def test_a_share_is_told_in_whole_percent(part: float, told: str) -> None:
    assert share(part) == told


def test_a_range_of_versions_is_told_in_one_line() -> None:
    found = Regression(
        last_working="v0.8.5", first_failing="0.9.0", still_failing=("0.9.1", "0.10.0"), culprit="#7"
    )

    assert range_words(found) == "works in 0.8.5, fails in 0.9.0, still in 0.9.1, 0.10.0, since #7"
    assert range_words(Regression()) == ""


def test_shades_rise_from_none_to_the_most() -> None:
    assert [shade(value, 100) for value in (0, 1, 30, 100)] == [0, 1, 3, SHADES]


def test_only_the_words_of_a_change_are_underlined_and_the_command_stays_whole() -> None:
    parts = (
        CommandPart(text="vllm serve M "),
        CommandPart(text="--seed 1 ", change="added"),
        CommandPart(text="--port 1"),
    )
    item = ComposedCommand(
        change="--seed 1", line="vllm serve M --seed 1 --port 1", parts=parts, source="command"
    )
    source = '{% from "_composed.html" import composed_command %}{{ composed_command("c", item) }}'
    page = _environment().from_string(source).render(item=item)
    command = page.partition('<code id="c">')[2].partition("</code>")[0]

    assert command == (
        'vllm serve M <ins><span class="option">--seed</span> 1</ins> <span class="option">--port</span> 1'
    )
