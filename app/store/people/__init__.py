"""Rows that people left: votes, judgements, kept logs."""
