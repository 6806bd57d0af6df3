"""HTML: rendering, template filters, evidence marks, diagrams."""
