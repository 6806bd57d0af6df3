"""Commands that learn weights from labelled data. Never imported by a serving process."""
