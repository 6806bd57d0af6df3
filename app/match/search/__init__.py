"""Search: a log, a question or words in; the most similar stored issues out."""
