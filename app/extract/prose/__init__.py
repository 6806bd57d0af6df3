"""Facts read from prose: stated error, regression range, cause, fix, mentions of other issues."""
