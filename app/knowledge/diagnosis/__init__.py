"""Diagnose a pasted log: the answer, its reasons, excerpts and next steps."""
