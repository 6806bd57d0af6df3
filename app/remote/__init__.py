"""HTTP clients for a remote triage server, snapshots, and chat webhooks."""
