"""The only package that runs SQL. It returns frozen dataclasses and plain values, never database rows."""
