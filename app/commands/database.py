"""The database that a command works on, set up if there is nothing yet."""

from __future__ import annotations

from app.config import Settings
from app.store.session import Store


def current_store(settings: Settings) -> Store:
    """The archive of the settings; a new one is set up, one of an older schema is left to `triage migrate`.

    Raises:
        SchemaError: the schema is older or newer than the program.
        StoreError: the database cannot be used.
    """
    from app.store.schema import check_current, current_revision
    from app.store.schema import migrate as migrate_store
    from app.store.session import open_store

    store = open_store(settings.database_url)
    if current_revision(store) is None:
        migrate_store(store)
    check_current(store)
    return store
