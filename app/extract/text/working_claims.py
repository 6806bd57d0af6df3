"""Whether something is stated to work: in a sentence that says so, or in the block of code below one.

In: a `Document` and a place in it. Out: yes or no. What such places set is not what fails.
"""

from __future__ import annotations

from app.extract.lists import load
from app.extract.rules.patterns import pattern
from app.extract.text.blocks import Places
from app.extract.text.document import Document, Span

MAX_LINE_CHARS = 300
"""How much of the prose around a place is looked at."""

_LIST = load("models")["works"]
_END = pattern(r"\n|\. |; ")
_WORKS = pattern(_LIST["line"], ignore_case=True)
_FAILS = pattern(_LIST["unless"], ignore_case=True)


def claimed_to_work(document: Document, places: Places, span: Span) -> bool:
    """Whether its own sentence, or the last line of prose before its block of code, says that it works."""
    source, start, end = span
    block = places.block_at(source, start)
    if block is None:
        return False
    text = document.sources[source]
    if block.kind == "prose":
        before = text[max(block.start, start - MAX_LINE_CHARS) : start]
        after = text[start : min(block.end, end + MAX_LINE_CHARS)]
        return _praises(_END.split(before)[-1] + _END.split(after)[0])
    if block.kind != "code":
        return False
    lead = places.block_at(source, block.start - 1)
    if lead is None or lead.start >= block.start or lead.kind not in ("prose", "heading"):
        return False
    above = text[max(lead.start, block.start - MAX_LINE_CHARS) : block.start].splitlines()
    lines = [line for line in above if line.strip("`~ \t")]
    return bool(lines) and _praises(lines[-1])


def _praises(line: str) -> bool:
    return bool(_WORKS.search(line)) and not _FAILS.search(line)
