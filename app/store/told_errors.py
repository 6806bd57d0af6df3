"""Where an issue's own text tells its error: the body and the places that its facts quote from it.

In: an issue's key. Out: a `ToldError`. Asked with every diagnosis that found something, so it reads no
more than it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam
from sqlmodel import Session, col, select

from app.store.records import CARD
from app.store.tables import CardRow, FactRow, IssueRow, ReadingRow

CAUSE = "error.message"
WRAPPER = "error.wrappers"
BODY = "body"

# Built once: putting a statement together costs more than running it.
_TEXT = (
    select(IssueRow.body, IssueRow.origin, CardRow.text, ReadingRow.facts)
    .join(
        CardRow, (col(CardRow.repo_id) == IssueRow.repo_id) & (col(CardRow.number) == IssueRow.number),
        isouter=True,
    )
    .join(
        ReadingRow,
        (col(ReadingRow.repo_id) == IssueRow.repo_id) & (col(ReadingRow.number) == IssueRow.number),
        isouter=True,
    )
    .where(col(IssueRow.repo_id) == bindparam("repo_id"), col(IssueRow.number) == bindparam("number"))
)  # fmt: skip
_SPANS = (
    select(FactRow.field, FactRow.source, FactRow.quote, FactRow.start)
    .where(
        col(FactRow.repo_id) == bindparam("repo_id"),
        col(FactRow.number) == bindparam("number"),
        col(FactRow.field).in_((CAUSE, WRAPPER)),
        col(FactRow.source).in_((BODY, CARD)),
    )
    .order_by(col(FactRow.position))
)


@dataclass(frozen=True, slots=True)
class Told:
    """Words of the text, and where they begin in it."""

    quote: str
    start: int


@dataclass(frozen=True, slots=True)
class ToldError:
    """`text` is the body; where only a card is known, the card's file. Places are those of `text`."""

    text: str
    is_card: bool
    cause: Told
    wrappers: tuple[Told, ...] = ()
    frame: str | None = None


def find_told_error(session: Session, repo_id: int, number: int) -> ToldError | None:
    """Where the issue's own text tells its error; None if it does not."""
    asked = {"repo_id": repo_id, "number": number}
    rows = session.connection().execute(_SPANS, asked).all()
    found = session.connection().execute(_TEXT, asked).first() if rows else None
    if found is None:
        return None
    body, origin, card, facts = found
    is_card = origin == CARD and card is not None
    source = CARD if is_card else BODY
    told = [(field, Told(quote, start)) for field, where, quote, start in rows if where == source]
    cause = next((item for field, item in told if field == CAUSE), None)
    if cause is None:
        return None
    error = (facts or {}).get("error") or {}
    return ToldError(
        card if is_card else body, is_card, cause,
        tuple(item for field, item in told if field == WRAPPER), error.get("frame"),
    )  # fmt: skip
