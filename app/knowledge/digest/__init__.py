"""One week: what is new, grows, and is fixed."""
