"""A page under watch: what it asked for, what it complained of, what moved, how much it weighs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, Response

SERIOUS = {"serious", "critical"}
NO_LOAD = ("data:", "blob:", "about:")

# Runs before any script of the page, in each document. `hadRecentInput`: what a click moves is no shift. Nor is
# what nobody sees: a blank at the end of a line has no place until a word follows it; Chromium tells that as a move.
RECORDER = """
window.__faults = []; window.__shift = 0; window.__moves = [];
document.addEventListener('securitypolicyviolation', e => __faults.push(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
{
  const box = at => [at.x, at.y, at.width, at.height].map(Math.round).join(' ');
  const name = node => !node ? 'what is gone' : node.nodeType === Node.TEXT_NODE ? 'words in ' + name(node.parentNode)
    : [node.localName, ...node.classList].join('.') + (node.id && '#' + node.id);
  const told = one => `${name(one.node)} [${box(one.previousRect)}] to [${box(one.currentRect)}]`;
  const isBlank = one => one.node?.nodeType === Node.TEXT_NODE && !one.node.data.trim();
  const isSeen = e => !e.hadRecentInput && !(e.sources.length && e.sources.every(isBlank));
  const watch = new PerformanceObserver(list => note(list.getEntries()));
  const note = entries => { for (const e of entries) if (isSeen(e)) {
    __shift += e.value;
    __moves.push(`${e.value.toFixed(4)} at ${Math.round(e.startTime)} ms: ${e.sources.map(told).join(', ') || 'unnamed'}`);
  } };
  window.__moved = () => { note(watch.takeRecords()); return [__shift, __moves]; };
  watch.observe({type: 'layout-shift', buffered: true});
}
"""
WEIGHT = """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  .reduce((sum, entry) => sum + entry.decodedBodySize, 0)"""
SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(window.__moved()))))"
OVERHANG = "() => document.scrollingElement.scrollWidth - innerWidth"


@dataclass
class Watched:
    """A page, and what was noticed since it was opened."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    has_scripts: bool = True

    def go(self, path: str, *, status: int = 200) -> Response:
        """Opens an address of the served base.

        A page of an error is told of in the console by the browser itself; that one complaint is expected.
        """
        reply = self.page.goto(f"{self.base}{path}")
        assert reply is not None
        assert reply.status == status, f"{path}: {reply.status}"
        if status >= 400:
            self.complaints[:] = [line for line in self.complaints if f"status of {status}" not in line]
        return reply

    def assert_quiet(self) -> None:
        """Nothing complained, nothing was blocked, nothing left this host, no dialog opened."""
        blocked = self.page.evaluate("window.__faults ?? []") if self.has_scripts else []
        assert (self.complaints, blocked, self.elsewhere, self.dialogs) == ([], [], [], [])

    def forget(self) -> None:
        """Takes no account of what was noticed so far."""
        for noticed in (self.complaints, self.elsewhere, self.dialogs, self.asked):
            noticed.clear()

    def assert_still(self, shift_max: float) -> None:
        """No more layout shift than that so far, after two more frames; else it is told what moved and where to."""
        shift, moves = self.page.evaluate(SETTLED)
        assert shift <= shift_max, "\n".join(
            [f"layout shift {shift:.4f}, [x y width height] in pixels:", *moves]
        )

    def weight(self) -> int:
        """Bytes of the document and all it loaded, uncompressed."""
        return int(self.page.evaluate(WEIGHT))

    def overhang(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.page.evaluate(OVERHANG))

    def barriers(self, *, only_serious: bool = False) -> list[str]:
        """What axe-core finds, one line each with the first element; of any level unless only serious ones count."""
        found: list[dict[str, Any]] = Axe().run(self.page).response["violations"]
        return [
            f"{one['impact']} {one['id']} x{len(one['nodes'])}: {one['nodes'][0]['html'][:160]}"
            for one in found
            if not only_serious or one["impact"] in SERIOUS
        ]


def watch(page: Page, base: str, *, has_scripts: bool = True) -> Watched:
    """Puts a page under watch before it opens anything."""
    watched = Watched(page, base, has_scripts=has_scripts)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            watched.complaints.append(message.text)

    def on_request(request: Request) -> None:
        watched.asked.append(request.url)
        if not request.url.startswith((base + "/", *NO_LOAD)):
            watched.elsewhere.append(request.url)

    def on_dialog(dialog: Dialog) -> None:
        watched.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("console", on_console)
    page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    page.on("request", on_request)
    page.on("dialog", on_dialog)
    if has_scripts:
        page.add_init_script(RECORDER)
    return watched
