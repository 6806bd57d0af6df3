"""Initial data of an empty database: cards of known failures, and the first release of each pull request."""
