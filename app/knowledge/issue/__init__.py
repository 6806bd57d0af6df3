"""Single issues: page, report, relations and votes; and lists of issues."""
