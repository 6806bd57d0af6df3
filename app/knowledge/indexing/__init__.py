"""Stored raw issues in; facts, links and clusters stored."""
