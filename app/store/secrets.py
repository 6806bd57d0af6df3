"""Random keys that a base makes for itself, one for each use."""

from __future__ import annotations

from secrets import token_bytes

from sqlalchemy import bindparam, select
from sqlmodel import Session

from app.store.dialect import insert_new
from app.store.tables import metadata

KEY_BYTES = 32
_ROW = metadata.tables["secret"].c
# Asked with every issue's page, so built once.
_SECRET = select(_ROW.value).where(_ROW.name == bindparam("name"))


def find_secret(session: Session, name: str) -> bytes | None:
    """The key of this name, or None if none was made yet."""
    return session.connection().execute(_SECRET, {"name": name}).scalar()


def make_secret(session: Session, name: str) -> bytes:
    """The key of this name, made now if there is none; two that make it at once get the same."""
    made = token_bytes(KEY_BYTES)
    insert_new(session, metadata.tables["secret"], {"name": name, "value": made}, keys=("name",))
    return find_secret(session, name) or made
