"""Tests of the clients of other servers."""
