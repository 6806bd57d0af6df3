"""The cards an empty database starts with: known failures as data files, and their reader."""
