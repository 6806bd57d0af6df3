"""How an answer is shaped: schemas, budgets, errors, the API description."""
