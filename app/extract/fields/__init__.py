"""One module for each field of an issue: GPU, model, backend, version, settings, kind of failure."""
