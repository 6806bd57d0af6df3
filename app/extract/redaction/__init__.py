"""Secrets and names of people and hosts: found, and masked by blocks of equal length."""
