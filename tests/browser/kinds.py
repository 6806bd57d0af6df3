"""Every kind of page, and how a visitor comes to it."""

from __future__ import annotations

from collections.abc import Callable

from app.config import LOG_LIMIT_BYTES
from tests.browser.base import ADMIN_TOKEN, FULL, MARLIN_START, STRANGE_LOG
from tests.browser.watched import Watched
from tests.knowledge.made_week import GROWING, WEEK
from tests.samples import FOREIGN_LOG, marlin_log
from tests.served import CRASH, CRASH_NUMBER

Way = Callable[[Watched], None]

LOGS = {
    "same": CRASH,
    "likely": marlin_log(start=MARLIN_START).replace("min_thread_n", "min_thread_k"),
    "related": marlin_log()
    .replace("min_thread_n = 64.", "min_thread_n = 64 of the kernel.")
    .replace("output_size_per_partition", "input_size_per_partition")
    .replace("verify_", "check_"),
    "unknown": STRANGE_LOG,
}
"""A log for each verdict."""
STACK = "0.9.2~H100~Qwen/Qwen3-8B~--tensor-parallel-size%204%20--enable-lora"


def at(path: str, status: int = 200) -> Way:
    """To an address."""
    return lambda seen: seen.go(path, status=status) and None


def diagnose(seen: Watched, log: str, *, keep: bool = False) -> None:
    """To the answer to a log, by the form of the first page."""
    seen.go("/")
    seen.page.locator("#log").fill(log)
    if keep:
        seen.page.locator("[name=keep]").check()
    seen.page.get_by_role("button", name="Diagnose", exact=True).click()
    seen.page.wait_for_url("**/diagnose")


def pasted(log: str) -> Way:
    return lambda seen: diagnose(seen, log)


def keep(seen: Watched) -> str:
    """Keeps a log; to its page. Returns the path that deletes it."""
    diagnose(seen, CRASH, keep=True)
    deletes = seen.page.locator("a[href*='/delete/']").get_attribute("href")
    assert deletes is not None
    with seen.page.expect_navigation():
        seen.page.locator("a[href^='/d/']").first.click()
    return deletes


def kept(seen: Watched) -> None:
    keep(seen)


def deleting(seen: Watched) -> None:
    seen.go(keep(seen))


def deleted(seen: Watched) -> None:
    deleting(seen)
    with seen.page.expect_navigation():
        seen.page.get_by_role("button", name="Delete it").click()


def too_large(seen: Watched) -> None:
    seen.go("/")
    seen.page.evaluate(
        "size => { document.getElementById('log').value = 'x'.repeat(size); }", LOG_LIMIT_BYTES + 1
    )
    submit_to_fault(seen, 413)


def blank(seen: Watched) -> None:
    seen.go("/")
    submit_to_fault(seen, 422)


def inbox(seen: Watched) -> None:
    """To the inbox, by its form where nobody is logged in yet."""
    seen.page.goto(f"{seen.base}/inbox")
    if seen.page.locator("#token").count():
        seen.page.locator("#token").fill(ADMIN_TOKEN)
        seen.page.get_by_role("button", name="Log in").click()
        seen.page.locator("[name=decision]").first.wait_for()
    seen.complaints[:] = [line for line in seen.complaints if "status of 401" not in line]


def inbox_login(seen: Watched) -> None:
    seen.page.context.clear_cookies()
    seen.go("/inbox", status=401)


def submit_to_fault(seen: Watched, status: int) -> None:
    with seen.page.expect_navigation() as answered:
        seen.page.locator("form.paste .go").click()
    assert answered.value is not None
    assert answered.value.status == status
    seen.complaints[:] = [line for line in seen.complaints if f"status of {status}" not in line]


KINDS: dict[str, Way] = {
    "home": at("/"),
    "home-example": at("/?example=1"),
    **{f"diagnosis-{verdict}": pasted(log) for verdict, log in LOGS.items()},
    "issue": at(f"/issues/{FULL}"),
    "issue-card": at(f"/issues/{CRASH_NUMBER}"),
    "issue-feature": at(f"/issues/{FULL + 5}"),
    "pull-request": at(f"/issues/{FULL + 50}"),
    "issues": at("/issues"),
    "issues-filtered": at("/issues?q=marlin&state=open&gpu=A100"),
    "issues-none": at("/issues?q=nothing+of+the+kind&gpu=H100"),
    "signatures": at("/signatures"),
    "signature": at(f"/signatures/{GROWING}"),
    "regressions": at("/regressions"),
    "regressions-version": at("/regressions?version=0.9.2"),
    "stack-empty": at("/stack"),
    "stack": at(f"/stack?stack={STACK}"),
    "issues-stack": at(f"/issues?stack={STACK}"),
    "signatures-stack": at(f"/signatures?stack={STACK}"),
    "regressions-stack": at(f"/regressions?version=0.9.2&stack={STACK}"),
    "digest-stack": at(f"/digest/{WEEK}?stack={STACK}"),
    "upgrade-empty": at("/upgrade"),
    "upgrade": at("/upgrade?from=0.8.5&to=0.9.2"),
    "upgrade-stack": at(f"/upgrade?from=0.8.5&to=0.9.2&stack={STACK}"),
    "upgrade-wrong": at("/upgrade?from=2&to=1", 422),
    "digest": at(f"/digest/{WEEK}"),
    "digest-archive": at("/digest/archive"),
    "digest-email": at(f"/digest/{WEEK}/email"),
    "report-empty": at("/report"),
    "report": at(f"/report?url={FULL}"),
    "report-not-stored": at("/report?url=99999", 404),
    "guide": at("/guide"),
    "guide-chatbots": at("/guide/chatbots"),
    "guide-benchmark": at("/guide/benchmark"),
    "families": at("/families"),
    "issue-stack": at(f"/issues/{FULL}?stack={STACK}"),
    "inbox-login": inbox_login,
    "inbox": inbox,
    "kept": kept,
    "kept-deleting": deleting,
    "kept-deleted": deleted,
    "error-404": at("/issues/77777", 404),
    "error-422-version": at("/regressions?version=" + "9" * 300, 422),
    "error-422": blank,
    "diagnosis-question": pasted("How do I run Qwen3 on two nodes with tensor parallel?"),
    "diagnosis-other-program": pasted(FOREIGN_LOG),
    "signatures-family": at("/signatures?family=GPU+out+of+memory"),
}
DOCS = {"docs": at("/docs")}
"""Exempt from the limit of weight."""
