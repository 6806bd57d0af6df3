"""Split an issue into blocks, lines and sentences."""
