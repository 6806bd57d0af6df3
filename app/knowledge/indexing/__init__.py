"""Derive and store facts, links and clusters from stored raw issues."""
