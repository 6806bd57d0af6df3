"""Facts read from prose: error that it or the title names, regression range, cause, fix, other issues."""
