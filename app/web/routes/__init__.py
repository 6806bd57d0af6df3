"""Routes: one module per subject, with its pages and JSON routes."""
