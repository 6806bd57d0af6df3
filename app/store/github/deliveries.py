"""Webhook deliveries that were taken in, so that none is taken twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete
from sqlmodel import Session, col

from app.store.engine.connect import insert_new
from app.store.tables import DeliveryRow, metadata

KEPT = timedelta(days=30)
"""GitHub lets a person send a delivery again for three days; an id lasts ten times as long here."""


def add_delivery(session: Session, delivery_id: str, event: str) -> bool:
    """Note a delivery, in the transaction that stores what it brought; False if it was noted before."""
    row = {"id": delivery_id, "event": event, "received_at": datetime.now(UTC)}
    return insert_new(session, metadata.tables["delivery"], row, keys=("id",))


def purge_deliveries(session: Session) -> int:
    """Forget the deliveries older than `KEPT`; how many they were."""
    before = datetime.now(UTC) - KEPT
    found = session.connection().execute(delete(DeliveryRow).where(col(DeliveryRow.received_at) < before))
    return found.rowcount
