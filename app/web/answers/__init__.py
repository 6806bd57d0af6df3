"""Response formats: schemas, character budgets, errors, the API description."""
