"""Where words of a page lie upon each other: measured on the lines of its text as they are painted."""

from __future__ import annotations

from playwright.sync_api import Page

SLACK_PX = 3
"""Lines of different fonts touch by so much: glyphs are smaller than the boxes of their lines."""

# Each text node's lines, cut to what its ancestors that scroll or clip let through; then every two of different
# nodes that share more than the slack in both directions.
_SCRIPT = """slack => {
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (parent.closest('.vh, .skip, script, style, textarea, option, select, title, desc')) continue;
    let [left, top, right, bottom] = [-1e6, -1e6, 1e6, 1e6];
    for (let at = parent; at && at !== document.documentElement; at = at.parentElement) {
      if (getComputedStyle(at).overflowX === 'visible' && getComputedStyle(at).overflowY === 'visible') continue;
      const box = at.getBoundingClientRect();
      left = Math.max(left, box.left); right = Math.min(right, box.right);
      top = Math.max(top, box.top); bottom = Math.min(bottom, box.bottom);
    }
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const box = { l: Math.max(line.left, left), r: Math.min(line.right, right), node,
        t: Math.max(line.top, top), b: Math.min(line.bottom, bottom) };
      const size = parseFloat(getComputedStyle(parent).fontSize), blank = Math.max(0, (box.b - box.t - size) / 2);
      box.t += blank; box.b -= blank;
      if (box.r - box.l > 1 && box.b - box.t > 1) boxes.push(box);
    }
  }
  boxes.sort((a, b) => a.t - b.t);
  const found = [];
  for (let i = 0; i < boxes.length && found.length < 10; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j].t < boxes[i].b - slack; j++) {
      const [a, b] = [boxes[i], boxes[j]];
      if (a.node === b.node) continue;
      const wide = Math.min(a.r, b.r) - Math.max(a.l, b.l), high = Math.min(a.b, b.b) - b.t;
      if (wide > slack && high > slack) found.push(
        `“${a.node.data.trim().slice(0, 60)}” and “${b.node.data.trim().slice(0, 60)}” share ` +
        `${Math.round(wide)} x ${Math.round(high)} px at ${Math.round(b.l)}, ${Math.round(b.t + scrollY)}`);
    }
  }
  return found;
}"""


def overlaps(page: Page) -> list[str]:
    """Pairs of texts that lie upon each other, ten at most; none on a page that can be read."""
    found: list[str] = page.evaluate(_SCRIPT, SLACK_PX)
    return found
