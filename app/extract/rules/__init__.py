"""Linear-time patterns, the loader of rules, and what is remembered of a text while it is read."""
