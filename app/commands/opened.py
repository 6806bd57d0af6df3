"""The database that a command works on, brought to the newest schema first."""

from __future__ import annotations

from app.config import Settings
from app.store.session import Store


def current_store(settings: Settings) -> Store:
    """The archive of the settings, migrated."""
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    store = open_store(settings.database_url)
    migrate_store(store)
    return store
