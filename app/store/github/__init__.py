"""Raw GitHub data: issues, comments, pull requests, releases, and the state of the sync."""
