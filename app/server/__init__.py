"""The processes of a running server: start, workers, timeouts, the background sync."""
