"""Where an issue's own text states its error: the body, and the places that its facts quote from it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmodel import Session

from app.store.engine.rows import sql_rows
from app.store.records import CARD

CAUSE = "error.message"
WRAPPER = "error.wrappers"
BODY = "body"


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """A quote of the text, and where it begins."""

    quote: str
    start: int


@dataclass(frozen=True, slots=True)
class StatedError:
    """`text` is the body; where only a card is known, the card's file. Places are those of `text`."""

    text: str
    is_card: bool
    cause: ErrorSpan
    wrappers: tuple[ErrorSpan, ...] = ()
    frame: str | None = None


def find_stated_error(session: Session, repo_id: int, number: int) -> StatedError | None:
    """Where the issue's own text states its error; None if it does not."""
    query = """
        SELECT issue.origin, issue.body, card.text, reading.facts -> 'error' ->> 'frame' FROM issue
        LEFT JOIN card ON card.repo_id = issue.repo_id AND card.number = issue.number
        LEFT JOIN reading ON reading.repo_id = issue.repo_id AND reading.number = issue.number
        WHERE issue.repo_id = :repo_id AND issue.number = :number
    """
    issue = sql_rows(session, query, repo_id=repo_id, number=number)
    if not issue:
        return None
    origin, body, card, frame = issue[0]
    is_card = origin == CARD and card is not None
    query = """
        SELECT field, quote, start FROM fact
        WHERE repo_id = :repo_id AND number = :number AND field IN :fields AND source = :source
        ORDER BY position
    """
    source, fields = CARD if is_card else BODY, [CAUSE, WRAPPER]
    rows = sql_rows(session, query, repo_id=repo_id, number=number, fields=fields, source=source)
    spans = [(field, ErrorSpan(quote, start)) for field, quote, start in rows]
    cause = next((span for field, span in spans if field == CAUSE), None)
    if cause is None:
        return None
    wrappers = tuple(span for field, span in spans if field == WRAPPER)
    return StatedError(card if is_card else body, is_card, cause, wrappers, frame)
