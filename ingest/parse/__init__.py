"""GitHub's JSON in, records out."""
