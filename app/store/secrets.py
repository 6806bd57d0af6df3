"""Random keys that a base makes for itself, one for each use."""

from __future__ import annotations

from secrets import token_bytes

from sqlmodel import Session, col, select

from app.store.dialect import insert_new
from app.store.tables import SecretRow, metadata

KEY_BYTES = 32


def find_secret(session: Session, name: str) -> bytes | None:
    """The key of this name, or None if none was made yet."""
    return session.exec(select(SecretRow.value).where(col(SecretRow.name) == name)).first()


def make_secret(session: Session, name: str) -> bytes:
    """The key of this name, made now if there is none; two that make it at once get the same."""
    made = token_bytes(KEY_BYTES)
    insert_new(session, metadata.tables["secret"], {"name": name, "value": made}, keys=("name",))
    return find_secret(session, name) or made
