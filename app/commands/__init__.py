"""The commands of `triage`, one module for each purpose; `app.cli` names and joins them."""
