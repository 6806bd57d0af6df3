"""One version: what fails in it, what stopped working with it."""
