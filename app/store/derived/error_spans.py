"""Where an issue's own text tells its error: the body and the places that its facts quote from it.

In: an issue's key. Out: a `ToldError`. Asked with every diagnosis that found something, so it reads no
more than it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Text, bindparam, cast, literal, null, select, union_all
from sqlmodel import Session

from app.store.records import CARD
from app.store.tables import metadata

CAUSE = "error.message"
WRAPPER = "error.wrappers"
BODY = "body"

_FACT, _ISSUE = metadata.tables["fact"].c, metadata.tables["issue"].c
_CARD, _READING = metadata.tables["card"].c, metadata.tables["reading"].c
_NO_TEXT, _NO_FACTS = cast(null(), Text), cast(null(), _READING.facts.type)
_REPO: BindParameter[Any] = bindparam("repo_id")
_NUMBER: BindParameter[Any] = bindparam("number")
# Built once and in one statement: a row without a field is the text, the others are places in it.
_TOLD = union_all(
    select(
        _FACT.field,
        _FACT.source,
        _FACT.quote,
        _FACT.start,
        _FACT.position,
        _NO_TEXT.label("card"),
        _NO_FACTS.label("facts"),
    ).where(
        _FACT.repo_id == _REPO,
        _FACT.number == _NUMBER,
        _FACT.field.in_((CAUSE, WRAPPER)),
        _FACT.source.in_((BODY, CARD)),
    ),
    select(_NO_TEXT, _ISSUE.origin, _ISSUE.body, literal(0), literal(-1), _CARD.text, _READING.facts)
    .join_from(
        metadata.tables["issue"],
        metadata.tables["card"],
        (_CARD.repo_id == _ISSUE.repo_id) & (_CARD.number == _ISSUE.number),
        isouter=True,
    )
    .outerjoin(
        metadata.tables["reading"],
        (_READING.repo_id == _ISSUE.repo_id) & (_READING.number == _ISSUE.number),
    )
    .where(_ISSUE.repo_id == _REPO, _ISSUE.number == _NUMBER),
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
    rows = sorted(session.connection().execute(_TOLD, asked).all(), key=lambda row: row.position)
    if len(rows) < 2 or rows[0].field is not None:  # nothing is told, or the issue is not stored
        return None
    _, origin, body, _, _, card, facts = rows[0]
    is_card = origin == CARD and card is not None
    source = CARD if is_card else BODY
    told = [(row.field, Told(row.quote, row.start)) for row in rows[1:] if row.source == source]
    cause = next((item for field, item in told if field == CAUSE), None)
    if cause is None:
        return None
    error = (facts or {}).get("error") or {}
    return ToldError(
        card if is_card else body,
        is_card,
        cause,
        tuple(item for field, item in told if field == WRAPPER),
        error.get("frame"),
    )
