"""The maintainers' inbox by keyboard alone: each letter decides, the next report follows, a decision sticks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.store.session import open_store
from tests.browser.base import browser_settings, put_read
from tests.browser.conftest import Opened
from tests.browser.kinds import inbox
from tests.browser.watched import Watched
from tests.samples import an_issue, fenced, marlin_log
from tests.served import served

NOON = datetime.now(UTC).replace(hour=12, minute=0) - timedelta(days=1)
"""All reports are of one day, whatever the hour: likeness counts the days between two reports."""
REPEATING = [
    an_issue(
        61_000 + n,
        title=f"[Bug]: Marlin refuses a layer of width {4544 + 64 * n}",
        body=fenced("GPU: NVIDIA A100, vLLM version: 0.9.2", marlin_log(line=20 + n, size=4544 + 64 * n)),
        created_at=NOON - timedelta(hours=n),
    )
    for n in range(4)
]
"""New reports of the failure that the base's own reports tell of."""
FOCUSED = "document.activeElement.textContent"


@pytest.fixture
def own(open_browser: Opened, tmp_path: Path) -> Iterator[Watched]:
    """A page of a server of its own: decisions change the base."""
    settings = browser_settings(tmp_path)
    store = open_store(settings.database_url)
    put_read(store, REPEATING, [])
    store.close()
    with served(settings) as address, open_browser() as seen:
        seen.base = address
        inbox(seen)
        yield seen
        seen.forget()


def pair(page: Page) -> tuple[str, ...]:
    """The report that is shown and what it may repeat; nothing once all is decided."""
    fields = page.locator("[name=number], [name=candidate]")
    return tuple(fields.nth(at).input_value() for at in range(fields.count()))


def test_letters_walk_and_decide(own: Watched) -> None:
    page, press = own.page, own.page.keyboard.press
    titles = page.locator(".rows .t").all_inner_texts()
    assert len(titles) >= 3, "the base has too little to decide"
    press("j")
    press("j")
    assert page.evaluate(FOCUSED) == titles[1]
    press("k")
    assert page.evaluate(FOCUSED) == titles[0]
    pairs = [pair(page)]
    for key in "ard":
        with page.expect_navigation():
            press(key)
        pairs.append(pair(page))
    assert len(set(pairs)) == 4, "a decision leaves its pair in the inbox"
    expect(page.locator(".verdict .key")).not_to_contain_text("0 decided")
    press("?")
    expect(page.locator("#keys")).to_be_visible()


def test_the_digest_lists_what_was_decided(own: Watched) -> None:
    number = own.page.locator("[name=number]").input_value()
    with own.page.expect_navigation():
        own.page.keyboard.press("a")
    year, of_year, _ = datetime.now(UTC).isocalendar()
    own.page.goto(f"{own.base}/digest/{year}-W{of_year:02}")
    decided = own.page.locator("[aria-labelledby=h-decided]")
    expect(decided).to_contain_text(f"#{number}")
    week = own.page.url.removeprefix(own.base)
    for path in (f"{week}.md", f"{week}/email"):
        text = own.page.request.get(own.base + path).text()
        assert "Decided by maintainers" in text, path
        assert f"#{number}" in text.partition("Decided by maintainers")[2].partition("Closed but alive")[0], (
            path
        )
