"""Duplicate detection: two issues in; the probability that they report the same failure out."""
