"""Masked excerpts around an error: of a pasted log and of a stored issue's text.

`common_words` and `marked_pieces` highlight what two excerpts share beyond words found in every log.
"""

import re
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.extract.log.lines import unwrap
from app.extract.reader import LogReading
from app.extract.redact import mask_part
from app.extract.text.blocks import LinesAt
from app.knowledge.diagnosis.shapes import LineRole, MatchLine
from app.starter.card import parse_card
from app.store.derived.readings import find_evidence, find_facts_without_evidence
from app.store.github.issues import find_cards, find_issues
from app.store.records import CARD

BEFORE_LINES, AFTER_LINES = 3, 1
MAX_LINES = 14
MAX_LINE_CHARS = 600
MAX_LOG_WRAPPERS, MAX_ISSUE_WRAPPERS = 5, 2
FRAME_REACH = 60
"""Lines above the error that are searched for its frame."""
LEAD_CHARS = 160
"""Characters of a very long line kept before the quoted words."""
MIN_MARK_CHARS = 4
"""Shortest word that is highlighted."""

CAUSE, OTHER, WRAPPER = "error.message", "error.other", "error.wrappers"

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_MARKUP = re.compile(r"\s*(?:```|~~~|</?(?:details|summary|br|p)\b|#{1,6} |[\^~ ]+$)")
"""Markup of the issue form, and the carets that Python prints under a line."""
_FENCE = re.compile(r"(?:```|~~~)\w*[ \t]*")
"""What is left of a code block in a text that lost its line breaks."""
_WORD = re.compile(r"\w+")
_PLAIN = frozenset(
    _WORD.findall(
        """
        with have from this that your line file raise return self args kwargs most recent call last traceback
        error exception info warning debug venv local home root dist site packages python3 conda miniconda3
        workspace data none true false
        """
    )
)
"""Words found in logs of all kinds, which are not highlighted."""


def without_colours(line: str) -> str:
    """Remove terminal colour codes, which a page cannot render."""
    return _COLOUR.sub("", line)


def log_excerpt(reading: LogReading, masked_log: str) -> tuple[MatchLine, ...]:
    """Return the cause, nearby lines (role `before`) and each wrapper's first line; at most 14, in order."""
    lines = {line.number: line for line in reading.lines}
    hot = reading.errors.cause.line.number if reading.errors.cause else 0
    roles: dict[int, LineRole] = {}
    for number in range(hot - BEFORE_LINES, hot + AFTER_LINES + 1) if hot else ():
        if number in lines and lines[number].raw.strip():
            roles[number] = "before"
    for text, _ in reading.errors.wrappers[:MAX_LOG_WRAPPERS]:
        first = next((line.number for line in reading.lines if text and text[:80] in line.raw), None)
        if first is not None:
            roles[first] = "wrapper"
    chosen = sorted(roles)[:MAX_LINES]
    if hot in roles:
        roles[hot] = "error"
        chosen = chosen if hot in chosen else sorted([*chosen[:-1], hot])
    return tuple(
        MatchLine(
            number=number,
            text=masked_log[lines[number].start : lines[number].end][:MAX_LINE_CHARS],
            role=roles[number],
        )
        for number in chosen
    )


def issue_excerpt(session: Session, repo_id: int, number: int, message: str = "") -> tuple[MatchLine, ...]:
    """Return an issue's error line, up to three lines before it, its frame and first wrappers, in order.

    Of several errors it is the one that shares most words with the caller's `message`, else the root cause.
    Empty if the body does not name the error.
    """
    issue = next(iter(find_issues(session, repo_id, [number])), None)
    card = find_cards(session, repo_id, [number]).get(number) if issue and issue.origin == CARD else None
    quoted = find_evidence(session, repo_id, [number], [CAUSE, OTHER, WRAPPER]).get(number, [])
    quoted = [item for item in quoted if item.source == ("body" if card is None else CARD)]
    text = issue.body if issue else ""
    if card is not None:  # only its log is shown
        text = parse_card(card).log
        quoted = [item.model_copy(update={"start": text.find(item.quote)}) for item in quoted]
    errors = sorted((item for item in quoted if item.field != WRAPPER), key=lambda item: item.field != CAUSE)
    if not errors:
        return ()
    sought = _distinctive(message)
    cause = max(errors, key=lambda item: len(sought & _distinctive(item.value)))
    wrappers = [item for item in quoted if item.field == WRAPPER and cause.field == CAUSE]
    facts = find_facts_without_evidence(session, repo_id, [number]).get(number)
    frame = facts.error.frame if facts and facts.error and cause.field == CAUSE else None
    lines = LinesAt(text)
    hot = lines.at(cause.start)
    if hot is None:
        return ()
    wanted: dict[int, tuple[LineRole, int]] = {}
    for at in range(max(0, hot - BEFORE_LINES), hot):
        if lines[at].text.strip() and not _MARKUP.match(lines[at].text):
            wanted[at] = ("before", lines[at].start)
    for item in wrappers[:MAX_ISSUE_WRAPPERS]:
        outer = lines.at(item.start)
        if outer is not None:
            wanted[outer] = ("wrapper", item.start)
    file, _, function = (frame or "").partition(":")
    for at in range(hot - 1, max(-1, hot - FRAME_REACH), -1) if file else ():
        if file in lines[at].text and function in lines[at].text:
            wanted[at] = ("frame", lines[at].start)
            break
    wanted[hot] = ("error", cause.start)
    first = lines[min(wanted)].start
    masked = mask_part(text, first, lines[max(wanted)].end)
    return tuple(
        MatchLine(
            number=at + 1,
            text=_FENCE.sub(
                "",
                _cut_around(
                    masked[lines[at].start - first : lines[at].end - first].rstrip(), spot - lines[at].start
                ),
            ),
            role=role,
        )
        for at, (role, spot) in sorted(wanted.items())
    )


def _cut_around(line: str, spot: int) -> str:
    """Return the line; a very long one is cut to the text around `spot`."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    begin = max(0, spot - LEAD_CHARS)
    end = begin + MAX_LINE_CHARS
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"


def common_words(ours: Sequence[MatchLine], theirs: Sequence[MatchLine]) -> frozenset[str]:
    """Return the distinctive words, in lower case, that both excerpts contain."""
    return _words_of(ours) & _words_of(theirs)


def _words_of(lines: Sequence[MatchLine]) -> frozenset[str]:
    """Return the distinctive words of the messages, without what a logger puts before them."""
    return frozenset().union(*(_distinctive(unwrap(without_colours(line.text))[0]) for line in lines))


def _distinctive(text: str) -> frozenset[str]:
    words = map(str.lower, _WORD.findall(text))
    return frozenset(word for word in words if len(word) >= MIN_MARK_CHARS and not word.isdigit()) - _PLAIN


def marked_pieces(line: str, common: frozenset[str]) -> list[tuple[str, bool]]:
    """Split a line, without colours, into (piece, is a common word)."""
    line = without_colours(line)
    return [(piece, piece.lower() in common) for piece in re.findall(r"\w+|\W+", line)]
