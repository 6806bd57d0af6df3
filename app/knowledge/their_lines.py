"""The telling lines of a stored issue, as its own text has them: the error, what stands before it, its frame.

In: an issue's key. Out: `MatchLine`s, secrets masked; empty where the body does not tell the error.
Lines are quoted by the spans that the reading kept, so nothing is read anew.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sqlmodel import Session

from app.extract.document import Line
from app.extract.lines_at import LinesAt
from app.extract.redact import mask_part
from app.knowledge.answers import LineRole, MatchLine
from app.starter.cards import parse_card
from app.store.told_errors import ToldError, find_told_error

BEFORE = 3
MAX_WRAPPERS = 2
FRAME_REACH = 60
"""How many lines above the error its frame is looked for."""
MAX_LINE_CHARS = 600
LEAD_CHARS = 160
"""What is kept of a very long line before the quoted words."""

_MARKUP = re.compile(r"\s*(?:```|~~~|</?(?:details|summary|br|p)\b|#{1,6} |[\^~ ]+$)")
"""Marks of the form, and the carets that Python sets under a line."""


def their_lines(session: Session, repo_id: int, number: int) -> tuple[MatchLine, ...]:
    """The error's line, up to three before it, its frame and the first wrappers, in the text's order."""
    told = find_told_error(session, repo_id, number)
    if told is None:
        return ()
    told = _of_card(told) if told.is_card else told
    text = told.text
    lines = LinesAt(text)
    hot = lines.at(told.cause.start)
    if hot is None:
        return ()
    wanted = _wanted(lines, hot, told)
    start = lines[min(wanted)].start
    shown = mask_part(text, start, lines[max(wanted)].end)
    return tuple(
        MatchLine(number=at + 1, text=_cut(shown, lines[at], start, spot), role=role)
        for at, (role, spot) in sorted(wanted.items())
    )


def _of_card(told: ToldError) -> ToldError:
    """The same in the card's log: that is what a reader is shown of a card."""
    log = parse_card(told.text).log
    placed = [replace(item, start=log.find(item.quote)) for item in (told.cause, *told.wrappers)]
    return replace(told, text=log, cause=placed[0], wrappers=tuple(placed[1:]))


def _wanted(lines: LinesAt, hot: int, told: ToldError) -> dict[int, tuple[LineRole, int]]:
    """The lines to show by their position: what each is, and where in the text its words begin."""
    wanted: dict[int, tuple[LineRole, int]] = {}
    for at in range(max(0, hot - BEFORE), hot):
        if lines[at].text.strip() and not _MARKUP.match(lines[at].text):
            wanted[at] = ("before", lines[at].start)
    for item in told.wrappers[:MAX_WRAPPERS]:
        outer = lines.at(item.start)
        if outer is not None:
            wanted[outer] = ("wrapper", item.start)
    frame = _frame_line(lines, hot, told.frame)
    if frame is not None:
        wanted[frame] = ("frame", lines[frame].start)
    wanted[hot] = ("error", told.cause.start)
    return wanted


def _frame_line(lines: LinesAt, hot: int, frame: str | None) -> int | None:
    """The nearest line above the error that names the frame's file and function."""
    file, _, function = (frame or "").partition(":")
    if not file:
        return None
    reach = range(hot - 1, max(-1, hot - FRAME_REACH), -1)
    return next((at for at in reach if file in lines[at].text and function in lines[at].text), None)


def _cut(shown: str, line: Line, start: int, spot: int) -> str:
    """A line as it may be shown; of a very long one what stands around its words."""
    text = shown[line.start - start : line.end - start].rstrip()
    if len(text) <= MAX_LINE_CHARS:
        return text
    begin = max(0, spot - line.start - LEAD_CHARS)
    piece = text[begin : begin + MAX_LINE_CHARS]
    return f"{'…' if begin else ''}{piece}{'…' if begin + MAX_LINE_CHARS < len(text) else ''}"
