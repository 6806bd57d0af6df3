"""Our own client of other servers: a triage server, a snapshot, a chat channel."""
