"""A log or a question in; the stored issues most like it out."""
