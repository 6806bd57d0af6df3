"""Where the next page of a list begins, as an opaque word."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import Query

from app.errors import InputError

CursorText = Annotated[
    str | None, Query(max_length=200, description="`next_cursor` of the page before, as it was given")
]

_NUMBER_DIGITS = 18


def write_cursor(kind: str, place: int) -> str:
    """The cursor of a place in a list of this kind."""
    return base64.urlsafe_b64encode(f"{kind}:{place}".encode()).decode().rstrip("=")


def next_cursor(kind: str, end: int, total: int) -> str | None:
    """The cursor of what comes after a part that ends there; None behind the last."""
    return write_cursor(kind, end) if end < total else None


def read_cursor(kind: str, cursor: str | None) -> int | None:
    """The place that a cursor of this kind holds; None without one.

    Raises:
        InputError: it is none of ours, or another list's.
    """
    if not cursor:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    name, _, place = text.partition(":")
    if name != kind or not (place.isascii() and place.isdigit()) or len(place) > _NUMBER_DIGITS:
        raise InputError("cursor: it is not one of this list. Begin without it.")
    return int(place)
