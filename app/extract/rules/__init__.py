"""Linear-time patterns, and the loader of rules."""
