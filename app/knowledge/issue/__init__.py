"""One issue: its page, its report, its relations; and lists of issues."""
