"""Markdown made to fit a budget of characters: cut at the end of a paragraph, a list entry or a code line.

In: Markdown of ours (`knowledge.quoting` made the foreign text in it inert), and the most characters it may
have. Out: its beginning, and a line that says how much was left out. A block of code is closed where it is
cut; nothing is cut inside a paragraph that holds code, so nothing in it can become markup.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.web.answers.budget import cut_text

_FENCE = re.compile(r" {0,8}(`{3,})[^`]*")
_ENTRY = re.compile(r" {0,8}(?:[-*]|\d{1,9}\.) ")
_HEADING = re.compile(r"#{1,6} ")
_NOTE_CHARS = 120
"""Room for the line that says what was left out."""


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """Lines that belong together, with the blank ones after them; `fence` closes a block of code."""

    text: str
    fence: str = ""

    @property
    def is_heading(self) -> bool:
        return bool(_HEADING.match(self.text))


def fit_markdown(text: str, max_chars: int) -> str:
    """The Markdown, shortened where it is longer than `max_chars` (at least 200)."""
    if len(text) <= max_chars:
        return text
    blocks = list(blocks_of(text))
    room = max_chars - _NOTE_CHARS
    kept: list[str] = []
    at = 0
    while at < len(blocks) and len(blocks[at].text) <= room:
        kept.append(blocks[at].text)
        room -= len(blocks[at].text)
        at += 1
    part = _part(blocks[at], room, is_first=not kept)
    if not part:
        while kept and blocks[len(kept) - 1].is_heading:
            kept.pop()
    short = "".join([*kept, part]).rstrip("\n")
    left = len(text) - len(short)
    return f"{short}\n\n*{left:,} more characters were left out: max_chars is {max_chars:,}.*\n".lstrip("\n")


def blocks_of(text: str) -> Iterator[MarkdownBlock]:
    """The blocks of a Markdown text; joined they are the text."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        if fence:
            lines.append(line)
            if line.strip() == fence:
                yield MarkdownBlock("".join(lines), fence)
                lines, fence = [], ""
            continue
        opens = _FENCE.fullmatch(line.rstrip("\n"))
        begins = bool(opens or _ENTRY.match(line) or _HEADING.match(line))
        after_blank = bool(lines) and not lines[-1].strip() and bool(line.strip())
        if lines and (begins or after_blank):
            yield MarkdownBlock("".join(lines))
            lines = []
        lines.append(line)
        fence = opens[1] if opens else ""
    if lines:
        yield MarkdownBlock("".join(lines), fence)


def _part(block: MarkdownBlock, room: int, *, is_first: bool) -> str:
    """The beginning of a block that does not fit; empty where none may be shown."""
    if block.fence:
        return _code_part(block, room)
    if not is_first or "`" in block.text:
        return ""
    cut = cut_text(block.text, room - 2)
    return f"{cut} …" if cut else ""


def _code_part(block: MarkdownBlock, room: int) -> str:
    lines = block.text.splitlines(keepends=True)
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" "))]
    end = f"{indent}{block.fence}\n"
    kept = lines[:1]
    size = len(lines[0]) + len(end)
    for line in lines[1:]:
        if line.strip() == block.fence or size + len(line) > room:
            break
        kept.append(line)
        size += len(line)
    return "".join([*kept, end]) if len(kept) > 1 else ""
