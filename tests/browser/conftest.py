"""A browser of the machine's own, and a served base. Every page it opens is watched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.base import browser_settings
from tests.browser.watched import Watched, watch
from tests.served import served

BROWSERS = ("chromium", "chromium-browser")
TIMEOUT_MS = 10_000

Opened = Callable[..., AbstractContextManager[Watched]]


# Not for the session: while a browser is driven its thread has a running loop, which other rooms' tests forbid.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The browser that Debian packages; nothing is downloaded."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        reason = "no chromium on this machine; install Debian's package chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    args = [
        "--disable-background-networking",
        "--disable-component-update",
        # A GPU is imitated by the processor, and each page has a process of its own: a fifth of the time.
        *("--disable-gpu", "--in-process-gpu", "--renderer-process-limit=1"),
    ]
    if os.geteuid() == 0:
        args.append("--no-sandbox")
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as driver:
        driven = driver.chromium.launch(executable_path=found, args=args)
        yield driven
        driven.close()


@pytest.fixture(scope="package")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over the base of `tests.browser.base`."""
    with served(browser_settings(tmp_path_factory.mktemp("base"))) as address:
        yield address


@pytest.fixture(scope="package")
def open_browser(browser: Browser, base: str) -> Opened:
    """Opens a context of its own with one watched page; options are those of a context."""

    @contextmanager
    def opened(**options: Any) -> Iterator[Watched]:
        context = browser.new_context(
            base_url=base, **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        context.set_default_timeout(TIMEOUT_MS)
        try:
            yield watch(context.new_page(), base)
        finally:
            context.close()

    return opened


@pytest.fixture
def seen(open_browser: Opened) -> Iterator[Watched]:
    """A page that must have run without a fault when the test ends."""
    with open_browser() as page:
        yield page
        page.assert_quiet()


@pytest.fixture(scope="package")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: the folder in TRIAGE_SCREENSHOTS, else one of pytest's."""
    found = os.environ.get("SCREENSHOTS")
    folder = Path(found) if found else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
