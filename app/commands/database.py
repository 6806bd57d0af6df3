"""Settings and database of a command; only few commands create a missing database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.errors import ConfigError
from app.terminal import say

if TYPE_CHECKING:
    from app.config import Settings
    from app.store.session import Store


def current_settings() -> Settings:
    """Return the settings, warning about unknown variables.

    Raises:
        ConfigError: a variable has an invalid value.
    """
    from app.config import load_settings, unknown_variables

    for name, nearest in unknown_variables().items():
        say(f"{name} is no setting" + (f"; did you mean {nearest}?" if nearest else ": see `triage config`"))
    return load_settings()


def database_of(settings: Settings, *, asks_server: bool = False) -> str:
    """Return the database URL, after checking that a SQLite file exists.

    Args:
        asks_server: the command also supports `--url`, which the error message then mentions.

    Raises:
        ConfigError: the file does not exist.
    """
    from app.store.engine.sqlite_file import sqlite_file

    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        raise _missing(str(file), asks_server=asks_server)
    if file is not None and not file.is_absolute() and "database_url" not in settings.model_fields_set:
        say(f"the database is {file} of this folder")
    return settings.database_url


def _missing(where: str, *, asks_server: bool) -> ConfigError:
    ways = "`triage up` makes and fills one, --database names another"
    return ConfigError(f"no database at {where}: {ways}{', --url SERVER needs none' if asks_server else ''}")


def current_store(settings: Settings, *, create: bool = False, asks_server: bool = False) -> Store:
    """Open the configured database; an outdated schema is an error, as only `triage migrate` changes it.

    Raises:
        ConfigError: there is no database, and `create` is False.
        SchemaError: the schema is older or newer than the program.
        StoreError: the database cannot be used.
    """
    from app.config import address_without_password
    from app.store.schema import check_current, current_revision, migrate
    from app.store.session import open_store

    store = open_store(settings.database_url if create else database_of(settings, asks_server=asks_server))
    if current_revision(store) is None:
        if not create:
            store.close()
            where = f"{address_without_password(settings.database_url)}, which is empty"
            raise _missing(where, asks_server=asks_server)
        say(new_database(settings))
        migrate(store)
    check_current(store)
    return store


def new_database(settings: Settings) -> str:
    """What to say before a database is made: its address may be mistyped."""
    from app.config import address_without_password

    return f"no database was at {address_without_password(settings.database_url)}: a new one is made there"


def _choose(url: str | None) -> None:
    from app.config import override

    override(database_url=url)


DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        callback=_choose,
        expose_value=False,
        help="overrides TRIAGE_DATABASE_URL",
    ),
]
"""Option of every command that uses the database; its callback changes the settings."""
