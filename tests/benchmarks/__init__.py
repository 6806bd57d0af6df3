"""Measurements, run by hand: `python -m tests.benchmarks.<name> --help`. Never part of a test run."""
