"""No words lie upon others, on any page, on screens and on paper; the cure stands in the first screen of a phone."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from sqlalchemy import text

from app.store.session import open_store
from ingest.importer import import_paths
from tests.browser.base import FULL
from tests.browser.conftest import Opened
from tests.browser.kinds import KINDS, diagnose
from tests.browser.overlap import overlaps
from tests.browser.test_pages import open_all
from tests.browser.watched import watch
from tests.samples import REPO
from tests.served import CRASH, served, starter_settings

ERROR_LINE = re.compile(r"\w+(?:Error|Exception): [^\n`]{1,2000}?(?=\\n|`|$)")
REPORTS_OF_LONGEST = 400
"""Reports of the corpus with the longest lines of an error, among which its longest signatures are looked for."""
LISTS_OF_LONGEST = (
    "/signatures",
    "/families",
    "/issues",
    "/regressions",
    "/digest",
    "/upgrade?from=0.8.0&to=0.11.0",
)

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


@pytest.fixture(scope="module")
def longest(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """A server over reports of the corpus with the longest errors, and the pages of the longest signatures."""
    folder = tmp_path_factory.mktemp("longest")
    with gzip.open(shared / "corpus" / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [(max(map(len, ERROR_LINE.findall(line)), default=0), line) for line in lines]
    path = folder / "issues.jsonl"
    path.write_text("".join(line for _, line in sorted(found)[-REPORTS_OF_LONGEST:]), encoding="utf-8")
    settings = starter_settings(folder, rate_limit="off")
    store = open_store(settings.database_url)
    import_paths(store, [path], REPO)
    with store.engine.connect() as connection:
        query = text("SELECT id FROM cluster WHERE text <> '' ORDER BY length(text) DESC, id LIMIT 50")
        pages = [f"/signatures/{key}" for (key,) in connection.execute(query)]
    store.close()
    assert len(pages) == 50
    with served(settings) as address:
        yield address, [*pages, *LISTS_OF_LONGEST]


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_no_words_lie_upon_others_with_the_longest_signatures_of_the_corpus(
    longest: tuple[str, list[str]], browser: Browser, form: str
) -> None:
    address, pages = longest
    context = browser.new_context(base_url=address, **FORMS[form])
    seen, wrong = watch(context.new_page(), address), {}
    for path in pages:
        seen.go(path)
        open_all(seen)
        if form == "paper":
            seen.page.emulate_media(media="print")
        found = overlaps(seen.page)
        if found or (form != "paper" and seen.overhang() > 0):
            wrong[path] = found
    context.close()
    assert wrong == {}


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
