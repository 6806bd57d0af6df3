"""The only package that runs SQL. It returns frozen dataclasses and plain values, never database rows.

Whatever opens a session, a lock or the schema raises `StoreError` if the database cannot be used: locked for
too long, disk full, damaged, unreachable. Docstrings name other errors only.
"""
