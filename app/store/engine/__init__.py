"""SQLite and PostgreSQL: connections, locks, faults; the only place that knows their differences."""
