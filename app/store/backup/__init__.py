"""Whole-database operations: backup, restore, copy, snapshot."""
