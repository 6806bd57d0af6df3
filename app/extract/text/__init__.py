"""An issue cut into blocks, lines and sentences."""
