"""Remedies stated in text: what was changed and whether it helped."""
