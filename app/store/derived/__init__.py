"""Rows that were derived from them: facts, search index, links, clusters, weekly counts."""
