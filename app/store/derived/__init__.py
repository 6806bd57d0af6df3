"""Data derived from the raw rows: facts, search index, links, clusters, weekly counts."""
