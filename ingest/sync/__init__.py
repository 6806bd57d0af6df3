"""The sync: bring the stored copy of a repository up to date."""
