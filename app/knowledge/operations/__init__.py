"""Tasks of an operator: checking an installation, deleting data, running the models."""
