"""Log lines in; tracebacks, the root cause and its signature out."""
