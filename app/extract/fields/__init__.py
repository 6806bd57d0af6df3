"""Extractors, one module per field: GPUs, models, backends, versions, settings, kind of failure."""
