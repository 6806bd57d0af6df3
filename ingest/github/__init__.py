"""GitHub's REST API: client, rate limits, paging."""
