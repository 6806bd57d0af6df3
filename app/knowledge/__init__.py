"""What follows from facts and links: a diagnosis, remedies in order, the fix seen from a version."""
