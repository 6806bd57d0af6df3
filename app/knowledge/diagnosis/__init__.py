"""A pasted log: the answer, its reasons and excerpts, the next steps."""
