"""A base moved as a whole: backup, restore, copy, snapshot."""
