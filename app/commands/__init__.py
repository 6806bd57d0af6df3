"""The commands of `triage`, one module per purpose; `app.cli` registers them."""
