"""The walks that bring a base up to date."""
