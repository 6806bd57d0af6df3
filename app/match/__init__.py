"""CATALOGUE: likeness of failures. Candidates from the index, a score, a probability, a band."""
