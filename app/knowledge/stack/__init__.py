"""Somebody's own stack - version, GPU, model, arguments - and what of the stored failures concerns it."""
