"""Two logs' telling lines side by side, the words that stand in both of them marked.

In: the lines of the pasted log and those of a stored issue. Out: both as pieces of text, common or not.
Clocks, ranks and paths that every log has are never marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.extract.loglines import unwrap
from app.knowledge.answers import Match
from app.knowledge.excerpt import ExcerptLine, without_colours

ROLES = {"error": "hot"}
REMARKS = {"wrapper": "wrapper, not the cause"}
MIN_TELLING_CHARS = 4
"""A run of common words holds at least one that is as long."""

_WORD = re.compile(r"\w+")
_PLAIN = frozenset({
    "the", "and", "for", "not", "with", "was", "are", "has", "have", "had", "but", "from", "this", "that",
    "its", "our", "you", "your", "any", "all", "can", "may", "see", "line", "file", "raise", "return", "self",
    "args", "kwargs", "most", "recent", "call", "last", "traceback", "error", "exception", "info", "warning",
    "debug", "opt", "usr", "venv", "env", "lib", "local", "home", "root", "dist", "site", "packages",
    "python3", "conda", "miniconda3", "workspace", "app", "src", "data", "mnt", "tmp", "bin", "none", "true",
    "false",
})  # fmt: skip
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
