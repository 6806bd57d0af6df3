"""Pairs in; groups of reports of one failure out."""
