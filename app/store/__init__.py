"""ARCHIVE: the only room that speaks SQL. No row leaves it; what crosses its door is frozen data."""
