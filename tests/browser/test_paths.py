"""What a visitor comes for, done in a browser: paste, read, follow, search, vote, keep, delete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.base import FULL, MARLIN_START, PULL
from tests.browser.conftest import Opened
from tests.browser.kinds import LOGS, diagnose, keep, too_large
from tests.browser.watched import Watched
from tests.knowledge.made_week import GROWING, WEEK
from tests.samples import marlin_log
from tests.served import CRASH, CRASH_NUMBER

CLIPBOARD = ["clipboard-read", "clipboard-write"]
DROP = """(box, [name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, {type: 'text/plain'}));
  for (const kind of ['dragover', 'drop']) box.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


def verdict(page: Page) -> str:
    return page.locator("h1#v").inner_text()


# ---- the paste box


def test_a_pasted_log_gets_its_verdict_first(seen: Watched) -> None:
    diagnose(seen, CRASH)

    assert f"#{CRASH_NUMBER}" in verdict(seen.page)
    order = seen.page.locator("main h2").all_inner_texts()
    assert [re.sub(r"\W.*", "", name.lower(), flags=re.S) for name in order[:4]] == [
        "do",
        "fix",
        "root",
        "matches",
    ]


@pytest.mark.parametrize("word", LOGS)
def test_each_verdict_says_its_word_beside_its_sign(seen: Watched, word: str) -> None:
    diagnose(seen, LOGS[word])
    key = seen.page.locator(f".verdict .key.{word}")

    expect(key.locator(".band")).to_have_text(re.compile(f"^(same failure|{word})$", re.I))
    expect(key.locator("svg").first).to_be_visible()


def test_the_verdict_leads_to_the_issue(seen: Watched) -> None:
    diagnose(seen, CRASH)
    seen.page.locator("h1#v a").click()

    expect(seen.page).to_have_url(re.compile(f"/issues/{CRASH_NUMBER}$"))


def test_control_and_enter_send_the_box(seen: Watched) -> None:
    seen.go("/")
    seen.page.locator("#log").fill(CRASH)
    seen.page.locator("#log").press("Control+Enter")

    expect(seen.page).to_have_url(re.compile("/diagnose$"))


def test_a_chosen_file_counts_in_place_of_the_box(seen: Watched, tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text(marlin_log(start=MARLIN_START), encoding="utf-8")
    seen.go("/")
    seen.page.locator("#file").set_input_files(log)
    seen.page.get_by_role("button", name="Diagnose", exact=True).click()

    expect(seen.page.locator("h1#v")).to_contain_text(f"#{FULL}")


def test_a_dropped_file_fills_the_box(seen: Watched) -> None:
    seen.go("/")
    box = seen.page.locator("#log")
    box.evaluate(DROP, ["crash.log", CRASH])

    expect(box).to_have_value(CRASH)
    expect(box).not_to_have_class(re.compile("drop"))


def test_the_example_fills_the_box_and_is_answered(seen: Watched) -> None:
    seen.go("/")
    seen.page.get_by_role("link", name="Try an example").click()
    seen.page.get_by_role("button", name="Diagnose", exact=True).click()

    assert "#39288" in verdict(seen.page)


def test_a_version_told_is_the_one_the_fix_is_seen_from(seen: Watched) -> None:
    seen.go("/")
    seen.page.locator("#log").fill(marlin_log(start=MARLIN_START))
    seen.page.locator("#ver").fill("0.9.2")
    seen.page.get_by_role("button", name="Diagnose", exact=True).click()

    assert "0.9.2" in seen.page.locator("dl.facts").first.inner_text()
    assert "seen from 0.9.2" in seen.page.locator("#h-fix").inner_text().lower()


def test_copy_buttons_copy_exactly_what_they_stand_beside(open_browser: Opened) -> None:
    with open_browser(permissions=CLIPBOARD) as seen:
        seen.go(f"/issues/{FULL}")
        button = seen.page.locator(".cmd .copy").first
        command = seen.page.locator(f"#{button.get_attribute('data-copy')}").inner_text()
        button.click()

        expect(button).to_have_text("Copied")
        assert seen.page.evaluate("navigator.clipboard.readText()") == command
        seen.assert_still(0)
        seen.assert_quiet()


def test_the_answer_is_copied_as_markdown(open_browser: Opened) -> None:
    with open_browser(permissions=CLIPBOARD) as seen:
        diagnose(seen, CRASH)
        seen.page.get_by_text("Copy as Markdown").click()
        seen.page.get_by_role("button", name="Copy the Markdown").click()

        expect(seen.page.get_by_role("button", name="Copied")).to_be_visible()
        assert f"#{CRASH_NUMBER}" in seen.page.evaluate("navigator.clipboard.readText()")
        seen.assert_quiet()


@pytest.mark.long
def test_a_log_over_the_limit_is_told_so_on_a_page(seen: Watched) -> None:
    too_large(seen)

    expect(seen.page.get_by_role("alert")).to_contain_text("10 MiB")
    expect(seen.page.locator("#log")).to_be_visible()


# ---- kept logs


def test_a_log_is_kept_only_if_asked_and_goes_with_its_link(seen: Watched) -> None:
    diagnose(seen, CRASH)
    assert seen.page.locator("a[href^='/d/']").count() == 0
    deletes = keep(seen)
    page_of_it = seen.page.url
    seen.page.locator("summary", has_text="The log, masked").click()
    expect(seen.page.locator("pre.log")).to_contain_text("operation not permitted")
    seen.go(deletes)
    seen.page.get_by_role("button", name="Delete it").click()

    expect(seen.page.locator("h1")).to_contain_text("deleted")
    seen.go(page_of_it.removeprefix(seen.base), status=404)


# ---- an issue


def test_evidence_leads_to_its_sentence(seen: Watched) -> None:
    seen.go(f"/issues/{FULL}")
    link = seen.page.locator(".glance .ev").first
    target = link.get_attribute("href")
    assert target is not None
    link.click()

    mark = seen.page.locator(f"mark{target}")
    expect(mark).to_be_in_viewport()
    assert mark.inner_text()
    assert seen.page.evaluate("document.querySelector(':target').id") == target[1:]


def test_every_evidence_link_has_its_mark(seen: Watched) -> None:
    seen.go(f"/issues/{FULL}")
    dead = seen.page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1)).filter(id => !document.getElementById(id))"
    )

    assert seen.page.locator(".ev").count() > 5
    assert dead == []


def test_an_issue_shows_its_pull_requests_and_what_is_like_it(seen: Watched) -> None:
    seen.go(f"/issues/{FULL}")
    related = seen.page.locator("section[aria-labelledby=rel]")

    for number in (PULL, FULL + 1):
        assert related.get_by_role("link", name=f"#{number}").count()


def test_an_issue_says_whether_it_affects_a_stack(seen: Watched) -> None:
    seen.go(f"/issues/{FULL}?stack=0.9.2~H100~Qwen/Qwen3-32B-AWQ~--tensor-parallel-size%204")
    expect(seen.page.locator(".verdict .aff")).to_contain_text("ffect")
    seen.go(f"/issues/{FULL}?stack=0.9.2~MI300X")
    expect(seen.page.locator(".verdict .aff")).to_contain_text("Does not affect you")
    seen.go(f"/issues/{FULL}")
    assert seen.page.locator(".verdict .aff").count() == 0


def test_the_fix_is_seen_from_a_version_that_is_typed(seen: Watched) -> None:
    seen.go(f"/issues/{FULL}")
    seen.page.locator("#v").fill("0.9.2")
    seen.page.get_by_role("button", name="What about mine?").click()

    expect(seen.page.locator("#fix")).to_contain_text("0.9.2")
    expect(seen.page).to_have_url(re.compile("vllm_version=0.9.2"))


def test_a_vote_counts_once_and_is_taken_back(seen: Watched) -> None:
    seen.go(f"/issues/{FULL}")
    yes = seen.page.locator(".votes button").first
    yes.click()
    expect(seen.page.locator(".votes button").first).to_have_attribute("aria-pressed", "true")
    assert yes.locator("b").inner_text() == "1"
    yes.click()
    expect(seen.page.locator(".votes button").first).to_have_attribute("aria-pressed", "false")
    assert yes.locator("b").inner_text() == "0"


# ---- lists


def test_facets_narrow_the_list_and_tokens_widen_it_again(seen: Watched) -> None:
    seen.go("/issues")
    total = seen.page.locator("#found [role=status]").inner_text()
    seen.page.locator("#filters").get_by_role("link", name="slowdown").click()
    expect(seen.page).to_have_url(re.compile("=slowdown$"))
    assert seen.page.locator("#found [role=status]").inner_text() != total
    seen.page.locator(".token").click()

    expect(seen.page.locator("#found [role=status]")).to_have_text(total)


def test_search_as_you_type_asks_for_the_same_address_as_the_form(seen: Watched) -> None:
    seen.go("/issues")
    seen.page.locator("#q").press_sequentially("marlin width")
    expect(seen.page).to_have_url(re.compile(r"\?q=marlin\+width$"))
    live = seen.page.locator("#found").inner_text()
    expect(seen.page.locator("#q")).to_be_focused()
    seen.page.locator("#q").press("Enter")
    seen.page.wait_for_load_state()

    assert seen.page.locator("#found").inner_text() == live
    assert f"#{FULL + 1}" in live


def test_nothing_found_says_what_to_remove(seen: Watched) -> None:
    seen.go("/issues?q=marlin&gpu=MI355X")
    seen.page.locator("#none + .say a").last.click()

    expect(seen.page).to_have_url(re.compile(r"/issues\?(q|gpu)=\w+$"))


def test_a_signature_leads_to_its_reports(seen: Watched) -> None:
    seen.go("/signatures")
    seen.page.locator(f"a[href='/signatures/{GROWING}']").first.click()
    expect(seen.page.locator(".key b")).to_have_text("6")
    seen.page.locator("main a[href='/issues/200']").first.click()

    expect(seen.page).to_have_url(re.compile("/issues/200$"))


def test_a_version_tells_its_regressions(seen: Watched) -> None:
    seen.go("/regressions?version=0.9.2")

    assert seen.page.locator(f"main a[href='/issues/{FULL}']").count()


def test_a_digest_leads_to_the_weeks_beside_it(seen: Watched) -> None:
    seen.go(f"/digest/{WEEK}")
    seen.page.locator("a[rel=prev]").first.click()
    expect(seen.page).to_have_url(re.compile("/digest/2026-W14$"))
    seen.page.locator("a[rel=next]").first.click()

    expect(seen.page).to_have_url(re.compile(f"/digest/{WEEK}$"))


def test_a_report_is_made_of_a_number(seen: Watched) -> None:
    seen.go("/report")
    seen.page.locator("#u").fill(str(FULL))
    seen.page.get_by_role("button", name="Make the report").click()

    expect(seen.page.locator("h1")).to_contain_text("min_thread_n")


@pytest.mark.parametrize("name", ["Diagnose", "Issues", "Signatures", "Regressions", "Digest", "Report"])
def test_the_menu_says_where_one_is(seen: Watched, name: str) -> None:
    seen.go("/issues" if name == "Diagnose" else "/")
    seen.page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()

    expect(seen.page.locator(".top [aria-current=page]")).to_have_text(name)


def test_an_address_within_the_api_unfolds_its_route(open_browser: Opened) -> None:
    with open_browser(viewport={"width": 360, "height": 800}) as seen:
        seen.go("/docs#/diagnosis/diagnose")

        expect(seen.page.locator(".opblock.is-open")).to_have_count(1)
        expect(seen.page.locator(".opblock.is-open .opblock-body")).to_be_visible()
        assert seen.overhang() <= 0
        seen.assert_quiet()


# ---- paper


def test_a_digest_prints_in_ink_without_menus(seen: Watched, pictures: Path) -> None:
    seen.go(f"/digest/{WEEK}")
    seen.page.emulate_media(media="print", color_scheme="dark")

    assert seen.page.locator(".top").is_hidden()
    assert seen.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    printed = seen.page.pdf(format="A4", prefer_css_page_size=True)
    (pictures / "digest.pdf").write_bytes(printed)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 2


def test_an_issue_prints_on_two_pages_however_long_its_text_is(seen: Watched, pictures: Path) -> None:
    seen.go(f"/issues/{FULL}")
    seen.page.evaluate(
        "document.querySelector('.quoted').append(document.createElement('pre'), 'line of a log\\n'.repeat(9000))"
    )
    printed = seen.page.pdf(format="A4", prefer_css_page_size=True)
    (pictures / "issue.pdf").write_bytes(printed)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 2
    seen.page.emulate_media(media="print")
    assert seen.page.locator(".quoted mark").first.is_visible()
