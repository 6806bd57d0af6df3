"""No words lie upon others, on any page, on screens and on paper; the cure stands in the first screen of a phone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.base import FULL
from tests.browser.conftest import Opened
from tests.browser.kinds import KINDS, diagnose
from tests.browser.overlap import overlaps
from tests.browser.test_pages import LAID_OUT_BY_MAIL_PROGRAMS, open_all
from tests.served import CRASH

FORMS: dict[str, dict[str, Any]] = {
    "light-1280": {"viewport": {"width": 1280, "height": 740}},
    "dark-360": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}},
    "paper": {"viewport": {"width": 718, "height": 1000}},
}
"""Paper is A4 less its margins, in pixels."""
EVERY_TIME = {
    ("light-1280", "regressions-version"),
    ("light-1280", "diagnosis-same"),
    ("dark-360", "signatures"),
    ("dark-360", "issue"),
    ("paper", "digest"),
    ("paper", "signature"),
}
LONG_NAME = "AttributeError | module 'a_very_long_package.and_its_module' has no attribute 'and_a_name' " * 3
"""What stands in place of each name in a row: as long as the longest signatures."""


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        pytest.param(form, kind, marks=[] if (form, kind) in EVERY_TIME else [pytest.mark.long])
        for form in FORMS
        for kind in KINDS
        if kind not in LAID_OUT_BY_MAIL_PROGRAMS
    ],
)
def test_no_words_lie_upon_others(open_browser: Opened, form: str, kind: str) -> None:
    with open_browser(**FORMS[form]) as seen:
        KINDS[kind](seen)
        open_all(seen)
        if form == "paper":
            seen.page.emulate_media(media="print")
        assert overlaps(seen.page) == []
        seen.page.evaluate(
            "text => document.querySelectorAll('tbody th a, .row .t, .row .err').forEach(one => one.textContent = text)",
            LONG_NAME,
        )
        assert overlaps(seen.page) == []
        assert form == "paper" or seen.overhang() <= 0


def test_words_that_lie_upon_others_are_found(open_browser: Opened) -> None:
    with open_browser() as seen:
        seen.go("/digest")
        seen.page.evaluate("document.querySelector('h1').style.marginBottom = '-4rem'")
        assert overlaps(seen.page)


def test_the_cure_stands_in_the_first_screen_of_a_phone(open_browser: Opened) -> None:
    with open_browser(**FORMS["dark-360"]) as seen:
        for path in (f"/issues/{FULL}", "crash"):
            if path == "crash":
                diagnose(seen, CRASH)
            else:
                seen.go(path)
            box = seen.page.locator(".cmd, #rem ~ div .say, [aria-labelledby=h-do] .say").first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 740, path
