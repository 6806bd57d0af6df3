"""A page as it comes over a slow line to a slow machine: tag by tag, each state of it laid out and painted.

What a load on a given machine paints on the way is chance. Here all that it could paint is painted in turn, so
that whatever moves in one of them is found each time.
"""

from __future__ import annotations

from tests.browser.watched import Watched

PIECE_BY_PIECE = """async html => {
  const frame = () => new Promise(requestAnimationFrame);
  const [head, body] = html.split(/(?=<body)/);
  window.__shift = 0; window.__moves = [];
  document.open();
  document.write(head);
  while (!document.styleSheets.length) await frame();
  for (const piece of body.match(/<[^>]*>|[^<]+/g)) {
    document.write(piece);
    const isSeen = document.documentElement.scrollHeight <= innerHeight + 100;
    if (isSeen) await frame();
  }
  document.close();
}"""
"""Below the window nothing is waited for: there nothing that moves is seen."""


BARE = "/robots.txt"
"""Of the same host and policy, and without a script that would run twice in one window."""


def arrive(seen: Watched, path: str) -> None:
    """Lets the page of an address come in pieces."""
    seen.go(BARE)
    seen.page.evaluate(PIECE_BY_PIECE, seen.page.request.get(path).text())
