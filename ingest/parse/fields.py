"""Single fields of GitHub's JSON: each taken by name, checked, or refused with that name.

Numbers and lengths are checked against what the archive holds, so that one odd row is refused here
and does not stop a whole batch there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.errors import InputError

Row = Mapping[str, Any]

LARGEST_ID = 2**63 - 1
LARGEST_COUNT = 2**31 - 1

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """The text with NUL and lone surrogates as U+FFFD; of equal length, so offsets stay true."""
    if "\x00" in text:
        text = text.replace("\x00", _REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(_REPLACEMENT, text)
    return text


def clean(value: Any) -> Any:
    """A JSON value with all its texts cleaned; a number that is none (NaN, infinity) becomes null."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def text_of(row: Row, name: str, *, limit: int | None = None, wanted: bool = False) -> str | None:
    """A text, or None where it is missing or null.

    Raises:
        InputError: it is no text, longer than `limit`, or missing though `wanted`.
    """
    value = row.get(name)
    if value is None:
        if wanted:
            raise InputError(f"{name} is missing")
        return None
    if not isinstance(value, str):
        raise InputError(f"{name} is no text")
    if limit is not None and len(value) > limit:
        raise InputError(f"{name} is longer than {limit} characters")
    return value


def count_of(row: Row, name: str) -> int:
    """A count; 0 where it is missing or null."""
    value = row.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COUNT:
        raise InputError(f"{name} is no count")
    return value


def id_of(row: Row, name: str) -> int:
    """A key of GitHub's, which must be there: a whole number from 1 on."""
    value = row.get(name)
    if value is None:
        raise InputError(f"{name} is missing")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_ID:
        raise InputError(f"{name} is no whole number from 1 on")
    return value


def flag_of(row: Row, name: str) -> bool:
    """True or false; false where it is missing or null."""
    value = row.get(name)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{name} is neither true nor false")
    return bool(value)


def time_of(row: Row, name: str) -> datetime | None:
    """A time in RFC 3339 with its zone, or None where it is missing, null or empty.

    `gh` prints Go's zero time (year 1) for what has not happened; that is None, too.
    """
    value = text_of(row, name)
    if not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise InputError(f"{name} is a time without a zone")
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{name} is no time") from None
    return moment if moment.year > 1 else None


def part_of(row: Row, name: str) -> Row:
    """An object inside the row; empty where it is missing or null."""
    value = row.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{name} is no object")
    return value


def login_of(row: Row, name: str) -> str | None:
    """Who: an object with `login`, or the login itself; None for an account that is gone."""
    value = row.get(name)
    if isinstance(value, str):
        return text_of(row, name, limit=100) or None
    try:
        return text_of(part_of(row, name), "login", limit=100) or None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def labels_of(row: Row) -> tuple[str, ...]:
    """The label names, given as objects with `name` or as texts."""
    value = row.get("labels")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError("labels is no list")
    names: dict[str, None] = {}
    for item in value:
        name = item.get("name") if isinstance(item, dict) else item
        if not isinstance(name, str):
            raise InputError("labels holds something without a name")
        names[name] = None
    return tuple(names)
