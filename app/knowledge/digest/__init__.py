"""The weekly digest: new, growing and fixed failures."""
