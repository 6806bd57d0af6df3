"""Issues whose every text attacks the reader: in a real browser nothing of it runs, loads, covers or stalls."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.attacked import NESTED, READ, TOLD, WEEK, attacked_settings, cluster_of
from tests.browser.kinds import diagnose
from tests.browser.watched import Watched, watch
from tests.served import served
from tests.web.attacks import MARK, MARKUP, NESTINGS

CPU_MAX_S = 1.0
"""Of this process, which serves: a fifth of a second on most machines, minutes where a text costs its square."""
TRIES = 3
"""The first visit to a page compiles its template."""
# What our pages never have inside <main>: whatever is found came out of a text.
STRANGERS = """() => [...document.querySelectorAll('main *')].filter(one =>
  /^(script|style|iframe|frame|object|embed|img|video|audio|link|meta|base|math|foreignobject|x-a|plaintext|xmp)$/i.test(one.tagName)
  || [...one.attributes].some(a => /^on|^style$|^srcdoc$|^formaction$/.test(a.name))
  || /^(javascript|data|vbscript|file|blob):/i.test(one.href?.baseVal ?? one.href ?? '')).map(one => one.outerHTML.slice(0, 200))"""

NAMES = list(MARKUP)


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A narrow page of a served base that is full of attacks."""
    with served(attacked_settings(tmp_path_factory.mktemp("attacked"))) as address:
        context = browser.new_context(viewport={"width": 360, "height": 800})
        yield watch(context.new_page(), address)
        context.close()


def assert_inert(page: Watched) -> None:
    assert page.page.evaluate("window.HIT") is None
    assert page.page.evaluate(STRANGERS) == []
    assert page.overhang() <= 0, "a text is wider than the window"
    page.assert_quiet()


def visit(page: Watched, path: str) -> None:
    page.forget()
    for left in reversed(range(TRIES)):
        began = time.process_time()
        page.go(path)
        took_s = time.process_time() - began
        if took_s <= CPU_MAX_S:
            break
        assert left, f"{path} took {took_s:.2f} s"
    assert MARK in page.page.locator("main").inner_text()
    assert_inert(page)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if at % 4 else []) for at, name in enumerate(NAMES)]
)
def test_an_issue_page_shows_the_text_and_runs_nothing(page: Watched, name: str) -> None:
    visit(page, f"/issues/{TOLD + NAMES.index(name)}")


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["read", "signature", "report"])
def test_no_other_page_of_an_issue_runs_it(page: Watched, kind: str, name: str) -> None:
    number = TOLD + NAMES.index(name)
    paths = {"read": f"/issues/{number - TOLD + READ}", "signature": f"/signatures/{cluster_of(number)}"}
    visit(page, paths.get(kind, f"/report?url={number}"))


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/issues",
        "/issues?q=intruder",
        "/signatures",
        "/signatures?q=intruder",
        f"/digest/{WEEK}",
        f"/report?url={TOLD}",
        f"/signatures/{cluster_of(TOLD)}",
        f"/report?url={READ + 5}",
        f"/issues/{READ + 7}",
    ],
)
def test_no_list_runs_them(page: Watched, path: str) -> None:
    visit(page, path)


@pytest.mark.parametrize(("name", "status"), [("gpu", 422), ("model", 200)])
def test_a_filter_that_finds_nothing_does_not_run(page: Watched, name: str, status: int) -> None:
    page.forget()
    page.go(f"/issues?{name}=%3Cscript%3Ewindow.HIT%3D1%3C/script%3E", status=status)
    assert_inert(page)


@pytest.mark.parametrize("name", NESTINGS)
def test_five_megabytes_of_nesting_do_not_stall_the_browser(page: Watched, name: str) -> None:
    visit(page, f"/issues/{NESTED + list(NESTINGS).index(name)}")


def test_every_page_of_the_list_is_inert(page: Watched) -> None:
    page.forget()
    page.go("/issues?since=2026-07-19")
    while (more := page.page.get_by_role("link", name="Next page")).count():
        more.click()
        page.page.wait_for_load_state()
        assert_inert(page)


def test_an_answer_to_a_log_of_attacks_runs_none_of_them(page: Watched) -> None:
    page.forget()
    diagnose(page, "\n".join(f"RuntimeError: {text[:400]}" for text in MARKUP.values()))

    assert MARK in page.page.locator("main").inner_text()
    assert_inert(page)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_to_an_attack_is_inert(page: Watched, name: str) -> None:
    page.forget()
    diagnose(page, f"Traceback (most recent call last):\nRuntimeError: {MARKUP[name]}")
    assert_inert(page)


def test_the_feed_and_the_mail_are_inert(page: Watched) -> None:
    page.forget()
    for path in ("/feed.atom", f"/digest/{WEEK}/email"):
        reply = page.page.context.request.get(f"{page.base}{path}")
        assert reply.ok
        assert MARK in reply.text()
        assert not any(
            open_ in reply.text().lower() for open_ in ("<script", "<img", "<svg", "<iframe", "<style")
        )
    page.go(f"/digest/{WEEK}/email")
    assert page.page.evaluate("window.HIT") is None
    page.assert_quiet()
