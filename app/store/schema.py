"""Schema versions and migrations. Alembic is configured in code and imported only to migrate."""

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from app.errors import SchemaError, StoreError
from app.paths import migrations_dir
from app.store.engine.connect import lock_writers
from app.store.engine.errors import explain
from app.store.engine.sqlite_file import restrict_to_owner, sqlite_file
from app.store.session import Store


def known_revisions() -> list[str]:
    """Return all revisions this code knows, oldest first. A migration file is named <date>_<what>.py."""
    found = sorted(path.stem for path in (migrations_dir() / "versions").glob("[0-9]*.py"))
    if not found:
        raise SchemaError(f"no migrations in {migrations_dir()}: the installation is not whole")
    return found


def newest_revision() -> str:
    """Return the schema revision that this code requires."""
    return known_revisions()[-1]


def current_revision(store: Store) -> str | None:
    """Return the database's schema revision, or None if it is empty."""
    try:
        with store.engine.connect() as connection:
            return _revision_on(connection)
    except DBAPIError as error:
        raise StoreError(f"the database cannot be read: {explain(error)}") from error


def _revision_on(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return str(found) if found else None


def migrate(store: Store, revision: str = "head") -> str:
    """Upgrade or downgrade the schema to `revision` and return the resulting revision. Idempotent.

    Raises:
        SchemaError: the database was made by a newer version of the program.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    check_not_newer(store)
    file = sqlite_file(str(store.engine.url))
    if file is not None:
        restrict_to_owner(file)
    config = Config()
    config.set_main_option("script_location", str(migrations_dir()).replace("%", "%%"))
    try:
        with store.engine.execution_options(writes=True).begin() as connection:
            config.attributes["connection"] = connection
            lock_writers(connection)
            scripts = ScriptDirectory.from_config(config)
            current = _revision_on(connection)
            target = None if revision == "base" else scripts.get_revision(revision)
            lower = {item.revision for item in scripts.iterate_revisions(current or "base", "base")}
            if target is None or (target.revision in lower and target.revision != current):
                command.downgrade(config, revision)
            else:
                command.upgrade(config, revision)
    except DBAPIError as error:
        raise StoreError(f"the database cannot be migrated: {explain(error)}") from error
    return current_revision(store) or "base"


def check_not_newer(store: Store) -> None:
    """Raise SchemaError if the database has a revision this code does not know."""
    current = current_revision(store)
    if current is not None and current not in known_revisions():
        raise SchemaError(
            f"the database has schema {current}, made by a newer version: install that version, "
            "or name another TRIAGE_DATABASE_URL"
        )


def check_current(store: Store) -> None:
    """Raise SchemaError unless the database has exactly the schema that this code requires."""
    check_not_newer(store)
    if current_revision(store) != newest_revision():
        raise SchemaError("the database's schema is older than the program: run `triage migrate`")
