"""Every kind of page, wide and narrow, light and dark: whole, light of weight, still, quiet, and open to all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import Opened
from tests.browser.kinds import DOCS, KINDS
from tests.browser.watched import Watched

WEIGHT_MAX_BYTES = 100 * 1024
FORMS = {
    "light-1280": ("light", 1280),
    "dark-360": ("dark", 360),
    "light-360": ("light", 360),
    "dark-1280": ("dark", 1280),
    "light-768": ("light", 768),
    "dark-2560": ("dark", 2560),
}
"""Colours and width in pixels; the first two hold each colour and each extreme once."""
SLOW_LINE = {"offline": False, "latency": 20, "downloadThroughput": 16_000, "uploadThroughput": 16_000}
"""Milliseconds, and bytes a second: a page comes in a dozen parts."""
SHIFT_MAX = 0.005
"""What settles while a page still comes: a line of which half is there, a table's columns. Good is below 0.1."""
EVERY_TIME = ("light-1280", "dark-360")

MADE_ELSEWHERE = {"docs", "digest-email"}
"""Swagger UI's own markup, and that which mail programs know: nothing serious may stand in the way there."""

VARIANTS = {
    "home-example",
    "issue-feature",
    "issue-card",
    "pull-request",
    "issues-none",
    "report-empty",
    "kept-deleting",
    "kept-deleted",
    "error-422",
    "error-422-version",
    "docs",
}
"""Pages that differ little from another kind."""


def _is_long(form: str, kind: str) -> bool:
    """Each kind is looked at once in an ordinary run, every second one dark and narrow; its variants are not."""
    return kind in VARIANTS or form != EVERY_TIME[list(KINDS | DOCS).index(kind) % 2]


COMBINED = [
    pytest.param(form, kind, marks=[pytest.mark.long] if _is_long(form, kind) else [], id=f"{form}-{kind}")
    for form in FORMS
    for kind in (*KINDS, *DOCS)
]


@pytest.fixture(scope="module")
def form(request: pytest.FixtureRequest, open_browser: Opened) -> Iterator[tuple[str, Watched]]:
    """One context for a colour and width, in which all kinds are opened in turn."""
    scheme, width = FORMS[request.param]
    with open_browser(color_scheme=scheme, viewport={"width": width, "height": 900}) as seen:
        yield request.param, seen


@pytest.mark.parametrize(("form", "kind"), COMBINED, indirect=["form"])
def test_a_page_is_whole_light_still_quiet_and_open_to_all(
    form: tuple[str, Watched], kind: str, pictures: Path
) -> None:
    name, seen = form
    seen.forget()
    (KINDS | DOCS)[kind](seen)
    if kind in DOCS:
        seen.page.locator(".opblock").first.wait_for()

    assert seen.page.title().strip(" ·")
    assert seen.overhang() <= 0, "the page is wider than the window"
    seen.assert_still(SHIFT_MAX)
    if kind not in DOCS:
        assert seen.weight() <= WEIGHT_MAX_BYTES
    if "SCREENSHOTS" in os.environ:  # nobody looks at them otherwise
        seen.page.screenshot(path=pictures / f"{kind}-{name}.png", full_page=True)
    open_all(seen)
    assert seen.overhang() <= 0, "what was folded up is wider than the window"
    assert seen.barriers(only_serious=kind in MADE_ELSEWHERE) == []
    seen.assert_quiet()


def open_all(seen: Watched) -> None:
    """Opens what is folded up, so that it is looked at too."""
    seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


@pytest.mark.parametrize("width", [1280, pytest.param(360, marks=pytest.mark.long)])
def test_nothing_moves_while_a_page_arrives_slowly(open_browser: Opened, width: int) -> None:
    with open_browser(viewport={"width": width, "height": 900}) as seen:
        line = seen.page.context.new_cdp_session(seen.page)
        line.send("Network.enable")
        line.send("Network.emulateNetworkConditions", SLOW_LINE)
        for kind in ("home", "issue", "issues", "signature", "regressions", "digest", "report"):
            KINDS[kind](seen)
            seen.assert_still(SHIFT_MAX)
