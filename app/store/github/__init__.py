"""Rows as GitHub has them: issues, comments, pull requests, releases, and how far the sync is."""
