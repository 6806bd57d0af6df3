"""Whether a failure is fixed, in which release, and what that means for a given version."""
