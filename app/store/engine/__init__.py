"""SQLite and PostgreSQL: connections, locks, errors. All engine-specific code is here."""
