"""The server's processes: startup, workers, connection limits, background sync and reading."""
