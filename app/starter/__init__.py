"""What an empty base starts with: cards of known failures, and the first release with each pull request."""
