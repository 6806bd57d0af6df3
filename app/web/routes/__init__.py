"""One module per subject, with its page and its JSON routes."""
