"""One module for each subject of the site: its page and its JSON."""
