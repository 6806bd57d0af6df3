"""Two issues in; how likely they report the same failure out."""
