"""A log, a question or words in; the stored issues most like them out."""
