"""The lines of a log that a page shows: the cause, its neighbours, the wrappers; secrets masked.

Two logs' telling lines side by side, the words that stand in both of them marked.

In: the lines of the pasted log and those of a stored issue. Out: both as pieces of text, common or not.
Clocks, ranks and paths that every log has are never marked.

The telling lines of a stored issue, as its own text has them: the error, what stands before it, its frame.

In: an issue's key. Out: `MatchLine`s, secrets masked; empty where the body does not tell the error.
Lines are quoted by the spans that the reading kept, so nothing is read anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlmodel import Session

from app.extract.log.lines import unwrap
from app.extract.redaction.redact import mask_part, redact
from app.extract.text.blocks import cut_lines, is_flattened, split_lines
from app.extract.text.document import Line
from app.extract.text.lines import LinesAt
from app.knowledge.diagnosis.log_input import clean_log
from app.knowledge.diagnosis.shapes import Diagnosis, LineRole, Match, MatchLine
from app.starter.cards import parse_card
from app.store.derived.error_spans import ToldError, find_told_error

BEFORE, AFTER = 3, 1
MAX_LINES = 14
MAX_LINE_CHARS = 600
AROUND_CHARS = 8_000
"""Longer than any key block."""
_STEP_CHARS = 1 << 16

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    """One line; `number` counts from 1, `role` "hot" is the cause."""

    number: int
    text: str
    role: Literal["hot", "dim"]
    remark: str = ""


def excerpt(log: str, diagnosis: Diagnosis) -> tuple[ExcerptLine, ...]:
    """The telling lines in the order of the log; at most 14."""
    cleaned = clean_log(log)
    lines = _Lines(cleaned)
    hot = diagnosis.root_cause.line if diagnosis.root_cause else 0
    wanted: dict[int, str] = {}
    if hot:
        for number in range(max(1, hot - BEFORE), hot + AFTER + 1):
            line = lines.find(number)
            if line is not None and line.text.strip():
                wanted[number] = ""
    for number in _wrapper_numbers(lines, diagnosis.wrappers):
        if number != hot:
            wanted[number] = "wrapper, not the cause"
    chosen = sorted(wanted)[:MAX_LINES]
    if hot and hot not in chosen:
        chosen = sorted([*chosen[: MAX_LINES - 1], hot])
    return tuple(
        ExcerptLine(
            number,
            _masked(cleaned, line)[:MAX_LINE_CHARS],
            "hot" if number == hot else "dim",
            wanted.get(number, ""),
        )
        for number in chosen
        if (line := lines.find(number)) is not None
    )


def without_colours(line: str) -> str:
    """A line without a terminal's colours, which a page can only show as odd signs."""
    return _COLOUR.sub("", line) if "\x1b" in line else line


def _masked(log: str, line: Line) -> str:
    """A line masked within its surroundings: the lines of a key block are secret only together."""
    start = max(0, line.start - AROUND_CHARS)
    text = redact(log[start : line.end + AROUND_CHARS], private=True).text
    return text[line.start - start : line.end - start]


class _Lines:
    """The lines of a log by their numbers, from 1, without a list of them: a log may have millions."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._cut = list(cut_lines(log)) if is_flattened(log) else None

    def find(self, number: int) -> Line | None:
        """The line of a number."""
        if self._cut is not None:
            return self._cut[number - 1] if number <= len(self._cut) else None
        start = self._start_of(number)
        return None if start is None else next(split_lines(self._log[start : self._end_of(start)], start))

    def number_of(self, words: str) -> int | None:
        """The number of the first line that holds these words."""
        if self._cut is not None:
            return next((number for number, line in enumerate(self._cut, 1) if words in line.text), None)
        at = self._log.find(words)
        return self._log.count("\n", 0, at) + 1 if at >= 0 else None

    def _end_of(self, start: int) -> int:
        end = self._log.find("\n", start)
        return end if end >= 0 else len(self._log)

    def _start_of(self, number: int) -> int | None:
        at, left = 0, number - 1
        while left and (ends := self._log.count("\n", at, at + _STEP_CHARS)) < left:
            at, left = at + _STEP_CHARS, left - ends
            if at >= len(self._log):
                return None
        for _ in range(left):
            at = self._log.find("\n", at) + 1
        return at


def _wrapper_numbers(lines: _Lines, wrappers: Sequence[str]) -> list[int]:
    """Where each wrapper stands for the first time."""
    found: list[int] = []
    for wrapper in wrappers[:5]:
        head = wrapper[:80]
        number = lines.number_of(head) if head else None
        if number is not None:
            found.append(number)
    return found


ROLES = {"error": "hot"}
REMARKS = {"wrapper": "wrapper, not the cause"}
MIN_TELLING_CHARS = 4
"""A run of common words holds at least one that is as long."""

_WORD = re.compile(r"\w+")
_PLAIN = frozenset(
    {
        "the",
        "and",
        "for",
        "not",
        "with",
        "was",
        "are",
        "has",
        "have",
        "had",
        "but",
        "from",
        "this",
        "that",
        "its",
        "our",
        "you",
        "your",
        "any",
        "all",
        "can",
        "may",
        "see",
        "line",
        "file",
        "raise",
        "return",
        "self",
        "args",
        "kwargs",
        "most",
        "recent",
        "call",
        "last",
        "traceback",
        "error",
        "exception",
        "info",
        "warning",
        "debug",
        "opt",
        "usr",
        "venv",
        "env",
        "lib",
        "local",
        "home",
        "root",
        "dist",
        "site",
        "packages",
        "python3",
        "conda",
        "miniconda3",
        "workspace",
        "app",
        "src",
        "data",
        "mnt",
        "tmp",
        "bin",
        "none",
        "true",
        "false",
    }
)
"""Words that stand in logs of all kinds: they begin and end no mark."""


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    is_common: bool = False


@dataclass(frozen=True, slots=True)
class SideLine:
    """One line in pieces; `role` and `remark` are those of an `ExcerptLine`."""

    number: int
    pieces: tuple[Piece, ...]
    role: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Sides:
    """The pasted log's lines and the stored issue's."""

    ours: tuple[SideLine, ...]
    theirs: tuple[SideLine, ...]


def side_by_side(excerpt: Sequence[ExcerptLine], match: Match | None) -> Sides | None:
    """Both sides; None where one of them has no lines."""
    if match is None or not match.excerpt or not excerpt:
        return None
    ours = [without_colours(line.text) for line in excerpt]
    theirs = [without_colours(line.text) for line in match.excerpt]
    common = _words(ours) & _words(theirs)
    return Sides(
        tuple(
            SideLine(line.number, _pieces(text, common), line.role, line.remark)
            for line, text in zip(excerpt, ours, strict=True)
        ),
        tuple(
            SideLine(
                line.number, _pieces(text, common), ROLES.get(line.role, "dim"), REMARKS.get(line.role, "")
            )
            for line, text in zip(match.excerpt, theirs, strict=True)
        ),
    )


def _words(lines: Iterable[str]) -> set[str]:
    return {found.lower() for line in lines for found in _WORD.findall(_said(line))}


def _said(line: str) -> str:
    """The line without what its program puts before the words."""
    text = unwrap(line)[0]
    return text if line.endswith(text) else line


def _pieces(line: str, common: set[str]) -> tuple[Piece, ...]:
    """The line cut where common words begin and end; joined it is the line."""
    at = 0
    pieces: list[Piece] = []
    for start, end in _runs(line, len(line) - len(_said(line)), common):
        if start > at:
            pieces.append(Piece(line[at:start]))
        pieces.append(Piece(line[start:end], is_common=True))
        at = end
    if at < len(line):
        pieces.append(Piece(line[at:]))
    return tuple(pieces)


def _runs(line: str, begin: int, common: set[str]) -> Iterator[tuple[int, int]]:
    """Spans of neighbouring common words that hold a telling one, without plain words at their ends."""
    run: list[tuple[int, int]] = []
    for found in _WORD.finditer(line, begin):
        if found[0].lower() in common:
            run.append(found.span())
            continue
        yield from _trimmed(line, run)
        run = []
    yield from _trimmed(line, run)


def _trimmed(line: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    told = [at for at, (start, end) in enumerate(run) if not _is_plain(line[start:end])]
    if any(_is_telling(line[run[at][0] : run[at][1]]) for at in told):
        yield run[told[0]][0], run[told[-1]][1]


def _is_plain(word: str) -> bool:
    return word.lower() in _PLAIN or len(word) < 3


def _is_telling(word: str) -> bool:
    return len(word) >= MIN_TELLING_CHARS and not word.isdigit() and not _is_plain(word)


BEFORE_THEIR_LINES = 3
MAX_WRAPPERS = 2
FRAME_REACH = 60
"""How many lines above the error its frame is looked for."""
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
    for at in range(max(0, hot - BEFORE_THEIR_LINES), hot):
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
