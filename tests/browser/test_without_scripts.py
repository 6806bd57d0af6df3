"""With scripts off every page says the same and every form works."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.base import FULL
from tests.browser.kinds import KINDS, diagnose, keep
from tests.browser.watched import Watched, watch
from tests.served import CRASH, CRASH_NUMBER


@pytest.fixture(scope="module")
def plain(browser: Browser, base: str) -> Iterator[Watched]:
    """A page that runs no script."""
    context = browser.new_context(java_script_enabled=False)
    yield watch(context.new_page(), base, has_scripts=False)
    context.close()


EVERY_TIME = {"home", "diagnosis-same", "issue", "issues-filtered", "signature", "digest", "report", "kept"}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in EVERY_TIME else pytest.mark.long) for kind in KINDS]
)
def test_a_page_is_complete(plain: Watched, kind: str) -> None:
    plain.forget()
    KINDS[kind](plain)

    assert plain.page.locator("h1").first.is_visible()
    # buttons that only a script could serve stay away
    assert [button for button in plain.page.locator("[data-copy]").all() if button.is_visible()] == []
    plain.assert_quiet()


def test_a_log_is_answered_kept_and_deleted(plain: Watched) -> None:
    diagnose(plain, CRASH)
    assert f"#{CRASH_NUMBER}" in plain.page.locator("h1#v").inner_text()
    plain.go(keep(plain))
    plain.page.get_by_role("button", name="Delete it").click()

    assert "deleted" in plain.page.locator("h1").inner_text()


def test_a_vote_is_cast_and_taken_back(plain: Watched) -> None:
    plain.go(f"/issues/{FULL}")
    for pressed in ("true", "false"):
        plain.page.locator(".votes button").first.click()
        expect(plain.page.locator(".votes button").first).to_have_attribute("aria-pressed", pressed)


def test_a_search_is_a_form(plain: Watched) -> None:
    plain.go("/issues?state=open")
    plain.page.locator("#q").fill("marlin width")
    plain.page.locator("#q").press("Enter")

    expect(plain.page).to_have_url(re.compile(r"q=marlin\+width"))
    expect(plain.page).to_have_url(re.compile("state=open"))
    assert f"#{FULL + 1}" in plain.page.locator("#found").inner_text()
