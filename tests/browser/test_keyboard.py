"""Everything with the keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.base import FULL
from tests.browser.kinds import KINDS, diagnose
from tests.browser.watched import Watched
from tests.served import CRASH, CRASH_NUMBER

FOCUSED = "document.activeElement.textContent"
# Steps of Tab from the top of the page; what is not seen when it has the focus is noted.
LOST = """() => { const one = document.activeElement; if (one === document.body) return null;
  const box = one.getBoundingClientRect(); const style = getComputedStyle(one);
  return box.width && box.height && style.visibility === 'visible'
    && (style.outlineStyle !== 'none' || one.matches('textarea, input')) ? '' : one.outerHTML.slice(0, 120); }"""
STEPS_MAX = 400


def tabbed(page: Page, times: int) -> str:
    for _ in range(times):
        page.keyboard.press("Tab")
    return str(page.evaluate(FOCUSED)).strip()


def test_the_first_stop_leads_past_the_menu(seen: Watched) -> None:
    seen.go("/issues")

    assert tabbed(seen.page, 1) == "Skip to content"
    seen.page.keyboard.press("Enter")
    seen.page.keyboard.press("Tab")
    expect(seen.page.locator("#q")).to_be_focused()


def test_a_log_is_typed_sent_and_its_issue_opened(seen: Watched) -> None:
    seen.go("/")
    seen.page.locator("#log").focus()
    seen.page.keyboard.insert_text(CRASH)
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")
    expect(seen.page.locator("h1#v")).to_contain_text(f"#{CRASH_NUMBER}")
    seen.page.locator("h1#v a").focus()
    seen.page.keyboard.press("Enter")

    expect(seen.page).to_have_url(re.compile(f"/issues/{CRASH_NUMBER}$"))


def test_letters_walk_the_list_and_enter_opens(seen: Watched) -> None:
    seen.go("/issues")
    titles = seen.page.locator(".rows .t").all_inner_texts()
    press = seen.page.keyboard.press
    for key, at in (("k", 0), ("j", 1), ("j", 2), ("k", 1)):
        press(key)
        assert seen.page.evaluate(FOCUSED) == titles[at]
    address = seen.page.evaluate("document.activeElement.pathname")
    press("Enter")

    expect(seen.page).to_have_url(re.compile(f"{address}$"))


def test_a_slash_searches_and_letters_then_are_text(seen: Watched) -> None:
    seen.go("/issues")
    seen.page.keyboard.press("/")
    expect(seen.page.locator("#q")).to_be_focused()
    seen.page.keyboard.type("jk?/")

    expect(seen.page.locator("#q")).to_have_value("jk?/")
    assert not seen.page.evaluate("document.getElementById('keys').open")


def test_a_question_mark_tells_the_keys(seen: Watched) -> None:
    seen.go("/issues")
    seen.page.keyboard.press("?")
    expect(seen.page.locator("#keys")).to_be_visible()
    seen.page.keyboard.press("j")
    assert seen.page.evaluate("document.getElementById('keys').contains(document.activeElement)")
    seen.page.keyboard.press("Escape")

    expect(seen.page.locator("#keys")).to_be_hidden()


def test_keys_work_in_what_a_search_brought(seen: Watched) -> None:
    seen.go("/issues")
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("marlin width")
    expect(seen.page).to_have_url(re.compile("marlin"))
    seen.page.evaluate("document.activeElement.blur()")
    seen.page.keyboard.press("j")

    assert seen.page.evaluate("document.activeElement.closest('.rows') !== null")


def test_a_vote_needs_no_mouse(seen: Watched) -> None:
    seen.go(f"/issues/{FULL}")
    seen.page.locator(".votes button").first.focus()
    seen.page.keyboard.press("Space")
    pressed = seen.page.locator(".votes button").first
    expect(pressed).to_have_attribute("aria-pressed", "true")
    pressed.focus()
    seen.page.keyboard.press("Enter")

    expect(seen.page.locator(".votes button").first).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize(
    "kind",
    [
        "home",
        "diagnosis-same",
        "issue",
        "issues",
        *(
            pytest.param(kind, marks=pytest.mark.long)
            for kind in ("signature", "regressions", "digest", "report")
        ),
    ],
)
def test_every_stop_of_the_tab_key_is_seen(seen: Watched, kind: str) -> None:
    KINDS[kind](seen)
    seen.page.evaluate("document.activeElement.blur()")
    lost = []
    for _ in range(STEPS_MAX):
        seen.page.keyboard.press("Tab")
        found = seen.page.evaluate(LOST)
        if found is None:
            break
        lost.append(found)

    assert len(lost) > 8
    assert [one for one in lost if one] == []
    assert len(lost) < STEPS_MAX, "Tab never comes to the end"


def test_a_diagnosis_is_read_from_the_top(seen: Watched) -> None:
    diagnose(seen, CRASH)

    assert (
        seen.page.evaluate(
            "[...document.querySelectorAll('[tabindex]')].filter(one => one.tabIndex > 0).length"
        )
        == 0
    )
