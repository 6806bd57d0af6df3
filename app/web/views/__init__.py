"""HTML: rendering, filters, links, pictures."""
