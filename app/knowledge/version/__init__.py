"""Known issues and regressions of a version."""
