"""A pasted log is never lost: whatever became of the form, Back or the page itself has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.config import LOG_LIMIT_BYTES
from tests.browser.base import STRANGE_LOG, browser_settings
from tests.browser.conftest import Opened
from tests.browser.kinds import diagnose, submit_to_fault, too_large
from tests.browser.watched import Watched
from tests.served import CRASH, served


def box(page: Page) -> str:
    return page.locator("#log").input_value()


def test_back_from_an_answer_brings_the_log_back(seen: Watched) -> None:
    diagnose(seen, CRASH)
    seen.page.go_back()
    expect(seen.page.locator("#log")).to_have_value(CRASH)


def test_a_log_may_be_edited_on_its_answer_and_sent_again(seen: Watched) -> None:
    diagnose(seen, STRANGE_LOG)
    seen.page.locator("summary", has_text="Edit this log").click()
    assert "the wobble of quux 77" in seen.page.locator("textarea[name=log]").input_value()


def test_what_could_not_be_read_stands_in_the_box_again_and_behind_back(seen: Watched) -> None:
    seen.go("/")
    seen.page.locator("#log").fill(CRASH)
    seen.page.locator("[name=vllm_version]").fill("not a version")
    submit_to_fault(seen, 422)
    assert CRASH.splitlines()[-1] in box(seen.page)
    assert seen.page.locator("[name=vllm_version]").input_value() == "not a version"
    seen.page.go_back()
    expect(seen.page.locator("#log")).to_have_value(CRASH)


@pytest.mark.long
def test_a_log_that_is_too_large_is_still_in_the_box_behind_back(seen: Watched) -> None:
    too_large(seen)
    expect(seen.page.get_by_role("alert")).to_contain_text("Go back: it is still in the box.")
    seen.page.go_back()
    seen.page.wait_for_function("document.getElementById('log').value.length > 0")
    seen.forget()  # the browser's own words on the refusal
    assert len(box(seen.page)) == LOG_LIMIT_BYTES + 1


@pytest.mark.long
def test_a_form_that_is_older_than_the_server_is_answered(open_browser: Opened, tmp_path: Path) -> None:
    settings = browser_settings(tmp_path)
    with open_browser() as seen:
        with served(settings) as address:
            seen.page.goto(address)
            seen.page.locator("#log").fill(CRASH)
        seen.page.locator("form.paste .go").click(no_wait_after=True)  # nobody is there
        seen.page.wait_for_timeout(500)
        seen.page.go_back()
        expect(seen.page.locator("#log")).to_have_value(CRASH)


def test_a_refused_form_leaves_the_log_behind_back(seen: Watched) -> None:
    seen.go("/")
    seen.page.locator("#log").fill(CRASH)
    seen.page.route(
        "**/diagnose", lambda route: route.fulfill(status=429, content_type="text/html", body="<p>Later.</p>")
    )
    submit_to_fault(seen, 429)
    seen.page.go_back()
    expect(seen.page.locator("#log")).to_have_value(CRASH)
    seen.forget()
